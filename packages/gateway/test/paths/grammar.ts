import fc from "fast-check";

/** The files that servers serve, by their paths, and the rule of each. Their text is their path. */
export const files: readonly string[] = ["/static/secret.txt", "/signin", "/deep/a/b.txt"];

const slash = fc.oneof(
  { weight: 20, arbitrary: fc.constant("/") },
  {
    weight: 6,
    arbitrary: fc.constantFrom(
      "//",
      "///",
      "\\",
      "%2f",
      "%2F",
      "%5c",
      "%5C",
      "/./",
      "/%2e/",
      "/;x/",
      "/;/",
      "/ /",
      "/%20/",
      "/.%2f",
      "\\.\\",
    ),
  },
);
const name = fc.constantFrom(
  ...[
    "x",
    "x\\y",
    "x%5cy",
    "%ff",
    "\xff",
    "%c0%af",
    "%c0%ae%c0%ae",
    "%c1%9c",
    "x;y=1",
    "x.",
    "x ",
    "x%20",
    "%",
    "%zz",
    "%00",
    "%7f",
    "\xc3\xa9",
  ],
  ...["...", ".. ", "..%20", "..\\..", "%252e%252e", "%252f", "http:", "a:b", "@", "'", "static", "signin", "deep"],
);
const up = fc.constantFrom("..", "..", "%2e%2e", ".%2e", "..;x", "..;", "%2E.");
/** Goes somewhere and comes back, for some servers. */
const detour = fc.tuple(slash, name, slash, up).map((parts) => parts.join(""));
const detours = fc.oneof(
  { weight: 9, arbitrary: fc.constant("") },
  { weight: 4, arbitrary: detour },
  { weight: 2, arbitrary: fc.array(detour, { maxLength: 3 }).map((all) => all.join("")) },
  { weight: 1, arbitrary: fc.tuple(slash, up).map((parts) => parts.join("")) },
  { weight: 1, arbitrary: fc.tuple(slash, name).map((parts) => parts.join("")) },
);
const end = fc.oneof(
  { weight: 4, arbitrary: fc.constant("") },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      "/",
      ".",
      "..",
      "%20",
      " ",
      "%2e",
      ";x",
      ";x=1/y",
      "?x",
      "?x=/..",
      "#",
      "#/x",
      "%00",
      "%00.png",
      "/.",
      "/x/..",
      "//",
      "\\",
      "%2f",
      "%5c",
      "/%2e%2e",
    ),
  },
);
const spelled = (segment: string): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 9, arbitrary: fc.constant(segment) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(segment.replace("s", "%73"), segment.toUpperCase(), `${segment};x`, `${segment}.`, `${segment}%20`),
    },
  );

/** Targets of requests that lead to one of the files, for some server. */
export const targets: fc.Arbitrary<string> = fc
  .constantFrom(...files)
  .chain((file) => {
    const segments = file.split("/").slice(1);
    const parts = segments.flatMap((segment) => [detours, slash, spelled(segment)]);
    return fc.tuple(fc.constantFrom("", "", "", "", "http://h", "/m/7", "/M/%2f"), ...parts, end);
  })
  .map((parts) => parts.join("").replaceAll(" ", "%20"))
  .filter((target) => target.startsWith("/") || target.startsWith("http:"));
