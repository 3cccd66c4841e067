import { posix } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { runs } from "../../../../test/runs.js";
import { isAmbiguous, readingsOf } from "../../src/requests/path.js";
import { compileMatch } from "../../src/rules/match.js";
import { MatchIndex } from "../../src/rules/match-index.js";
import { fits } from "./matching.js";

// Paths that servers read in different ways.

test("a path matches in every form a handler may resolve it to: as a URL, as a file path, or as both", () => {
  const asUrl = (path: string): string => new URL(`http://host${path}`).pathname;
  // What follows two slashes is a host then, so that the path of `//host/a` is `/a`.
  const asReference = (path: string): string => (URL.canParse(path, "http://host") ? new URL(path, "http://host").pathname : path);
  const onDisk = (path: string): string => posix.normalize(decodeURIComponent(path));
  const onWindows = (path: string): string => posix.normalize(decodeURIComponent(path).replaceAll("\\", "/"));
  const resolvers = [asUrl, asReference];
  // h3 1
  const decodedFirst = (path: string): string => (decodeURI(path.replace(/%3f/gi, "?")).split("?") as [string])[0];
  const before = [(path: string): string => path, ...resolvers];
  // Java leaves out parameters, Windows and Caddy what ends a segment. Node shows each byte as a character, and others read them as UTF-8.
  const withoutParameters = (path: string): string => path.replace(/;[^/\\]*/g, "");
  const trimmed = (path: string): string => path.replace(/[. ]+(?=\/|$)/g, "");
  const ofBytes = (path: string): string => Buffer.from(path, "latin1").toString();
  const handlers = before.flatMap((resolved) => [
    resolved,
    ...[onDisk, onWindows].flatMap((file) => [(path: string) => file(resolved(path)), (path: string) => file(ofBytes(path))]),
    (path: string) => onWindows(withoutParameters(resolved(path))),
    (path: string) => trimmed(onWindows(withoutParameters(resolved(path)))),
  ]);
  handlers.push(decodedFirst);
  const separator = fc.constantFrom("/", "/", "//", "\\", "%2f", "%2F", "%5C", "/./", "/%2e/", "/../", "/%2E./", "%2F..%2f");
  // Servers leave out one kind of end, so a path has one of them.
  const ends = [
    ["a;x", ";x", "..;x"],
    ["a.", "b%20", "a. .", "%20"],
    ["a%3fb", "%3F"],
  ];
  const names = ends.map((own) => fc.constantFrom("a", "%61", "B", ".", "..", "%2e%2e", "", "\xc3\xa9", ...own));
  const paths = names.map((name) => fc.array(fc.tuple(separator, name), { maxLength: 6 }).map((parts) => parts.flat().join("")));
  fc.assert(
    fc.property(fc.constantFrom("", "/"), fc.oneof(...paths), (slash, rest) => {
      const path = rest.startsWith("/") ? slash + rest : `/${rest}`;
      for (const handler of handlers) {
        // A rule for exactly this path.
        const rule = handler(path).replace(/[\\+*?(){}[\]:]/g, encodeURIComponent);
        expect(fits({ path: rule }, "GET", path), `${path} as ${rule}`).toBe(true);
      }
    }),
    runs(2000),
  );
});

test("a path matches as servers read it that take an empty segment as the value of a parameter, however its slashes are written", () => {
  const onlySlashes = (path: string): string => path;
  // restify, by url.parse
  const backslashes = (path: string): string => path.replaceAll("\\", "/");
  const encoded = (path: string): string => path.replace(/%2f/gi, "/");
  const all = (path: string): string => encoded(backslashes(path));
  const separator = fc.constantFrom("/", "//", "\\", "\\/", "/\\", "%2f", "%2F/");
  fc.assert(
    fc.property(fc.array(fc.tuple(separator, fc.constantFrom("a", "b", "c")), { minLength: 1, maxLength: 5 }), (parts) => {
      const path = `/a${parts.flat().join("")}`;
      for (const read of [onlySlashes, backslashes, encoded, all]) {
        const segments = read(path).slice(1).split("/");
        const rule = segments.map((segment) => (segment === "" ? ":empty" : segment.replaceAll("\\", "%5C"))).join("/");
        expect(fits({ path: `/${rule}` }, "GET", path), `${path} as /${rule}`).toBe(true);
      }
    }),
    runs(2000),
  );
});

const units = [
  "/a",
  "/",
  "/../a",
  "/..",
  "//a",
  "/a%2fb",
  "%2f",
  "/.",
  "%5c..",
  "\\",
  "/a;x",
  "/a.",
  "%25",
  "%3f",
  "/a%3F",
  "%ff",
  "/%ff",
  "\xff",
  "/\xc3\xa9",
];

test.each(units)("a path of %j, however long, has a few readings of bounded length", (unit) => {
  for (const length of [100, 1000, 64_000]) {
    const readings = readingsOf(`/${unit.repeat(length / unit.length)}`);
    expect(readings.length).toBeLessThanOrEqual(12);
    for (const reading of readings) expect(reading.length).toBeLessThan(66);
  }
});

test.each(["/", "/../a", "%2f", "%5c..", "\\", "/a;x", "/a/%5c", "/a%3fb", "/..%3f"])(
  "an unusual path of %j that is too long has one reading, which a rule still matches",
  (unit) => {
    const path = `/api${unit.repeat(20_000)}/tail`;
    expect(readingsOf(path)).toHaveLength(1);
    for (const rule of ["/api/*", "/api/*/tail", "/*"]) expect(fits({ path: rule }, "GET", path), rule).toBe(true);
  },
);

test.each(["", "x", "x/y", "/", "%00.json", "x//..", ["/x"], ["x"]])(
  "a path also counts as what stands before an encoded question mark, where h3 1 cuts the query off: %j behind it",
  (behind) => {
    const query = typeof behind === "string" ? behind : behind.join("").repeat(2000);
    for (const path of [`/api/login%3f${query}`, `/API/%6cogin/%3F${query}`, `//x/../api/login%3f${query}`]) {
      expect(fits({ path: "/api/login" }, "GET", path), path).toBe(true);
      expect(fits({ path: "/api/:name" }, "GET", path), path).toBe(true);
      expect(path.length > 1024 || !fits({ path: "/users" }, "GET", path), path).toBe(true);
    }
    for (const path of ["/api/login/x/..%3f", `/api/login/${"x".repeat(2000)}/..%3F`]) {
      expect([isAmbiguous(path), fits({ path: "/api/login" }, "GET", path + query)], path).toEqual([true, true]);
    }
    // Others take it for a character.
    expect(fits({ path: "/api/login" }, "GET", `/a/b%3f/${"x/../".repeat(query.length)}../../api/login`)).toBe(true);
  },
);

test.each([
  ["/m/:x/static/secret.txt", "/m/%2f/static%2fsecret.txt"],
  ["/m/:x/static/secret.txt", "/m/a%2fb/static%2fsecret.txt"],
  ["/m/:x/:y/static/secret.txt", "/m/a%2fb/%2f/static%2fsecret.txt"],
  ["/m/:a/:b/:c/:d/:e/:f/secret.txt", "/m/%2f/%2f/%2f/%2f/%2f/%2f%2fsecret.txt"],
])("a rule for %s below a mount path with parameters counts %s", (rule, path) => expect(fits({ path: rule }, "GET", path)).toBe(true));

test("a path that goes up leads only to rules that its own segments can make", () => {
  const rules = ["/x/secret", "/secret", "/static/secret", "/other/secret", "/static/x", "/login", "/:a/:b/:c/:d"];
  const matched = (path: string) => rules.filter((rule) => fits({ path: rule }, "GET", path));
  expect(matched("/static/x\\y/../secret")).toEqual(["/static/secret", "/:a/:b/:c/:d"]);
  expect(matched("/%ff%2f../secret")).toEqual(["/secret", "/:a/:b/:c/:d"]);
  expect(matched("/static/x%5cy//../secret")).toEqual(["/static/secret", "/:a/:b/:c/:d"]);
});

test.each([
  ...[
    ["/a"],
    ["/a/"],
    ["/A/b.txt"],
    ["/.well-known/x"],
    ["/%C3%A9%20x"],
    ["/a%2Fb"],
    ["//a"],
    ["/a;x=1"],
    ["/a."],
    ["*"],
    ["/a%252e"],
    ["/a?../\\"],
  ],
])("the path %j is not ambiguous", (path) => expect(isAmbiguous(path)).toBe(false));

test.each([
  ...[
    ["/a/../b"],
    ["/%2e%2e"],
    ["/a/."],
    ["/a%2f.."],
    ["/..;/a"],
    ["/.. /a"],
    ["/a\\b"],
    ["/a%5Cb"],
    ["/%ff"],
    ["/%c0%ae"],
    ["/%"],
    ["/%zz"],
    ["/%00"],
  ],
  ...[["/a%0Ab"], ["/%01"], ["//a%2fb"], ["/a;x//"], ["/a./%2F"], [`/a${"/".repeat(50_000)};`]],
])("the path %j is ambiguous", (path) => expect([path, [path, "/a"], ["/a", { path }]].map(isAmbiguous)).toEqual([true, true, true]));

test("a rule that matches a path also matches it when the path is too long to be matched fully", () => {
  const segment = fc.constantFrom("a", "b", "c");
  fc.assert(
    fc.property(fc.array(segment, { maxLength: 200 }), fc.array(fc.constantFrom("a", "b", ":x", "*"), { maxLength: 6 }), (path, rule) => {
      const pattern = rule.map((part) => (part === "*" ? "(/[abc])*" : part === ":x" ? "/[abc]" : `/${part}`)).join("");
      const expected = new RegExp(`^${pattern}$`).test(path.map((part) => `/${part}`).join(""));
      const found = fits({ path: `/${rule.join("/")}` }, "GET", `/${path.join("/")}`);
      if (expected || path.length <= 64) expect(found).toBe(expected);
    }),
  );
});

/** The middles of paths of which only the start and the end are read, and their last segment as servers read it that drop or decode something. */
const middles = [
  ...[
    ["/x".repeat(80), "x"],
    [`//${"x/".repeat(80)}x`, "x"],
    [`${"/x".repeat(70)}/y;//z`, "z"],
    ["/x;y//z".repeat(30), "z"],
  ],
  ...[
    [`${"/x".repeat(80)}${"/y;x".repeat(300)}`, "y"],
    ["/x;y".repeat(300), "x"],
    ["/x//".repeat(300), "x"],
    ["/x%2fy;".repeat(200), "y"],
  ],
] as [string, string][];

test("of a path that is too long to be read, the start and the last four segments match like those of a short one", () => {
  const segment = fc.constantFrom("a", "b", "%61", "B", "a".repeat(300));
  const some = fc.array(fc.constantFrom("a", "b", "a".repeat(300)), { maxLength: 4 });
  const parts = [fc.array(segment, { minLength: 1, maxLength: 3 }), fc.array(segment, { minLength: 1, maxLength: 6 })] as const;
  fc.assert(
    fc.property(
      fc.constantFrom(...middles),
      ...parts,
      some,
      some,
      fc.boolean(),
      ([middle, before], head, tail, ruleHead, ruleTail, hasSlash) => {
        const path = `/${head.join("/")}${middle}/${tail.join("/")}${hasSlash ? "/" : ""}`;
        const [first, last] = [head, tail].map((all) => all.map((one) => decodeURIComponent(one).toLowerCase())) as [string[], string[]];
        const fitsRule = (before: readonly string[], after: readonly string[]): boolean =>
          fits({ path: `/${[...before, "*", ...after].join("/")}` }, "GET", path);
        const begins = ruleHead.slice(0, first.length);
        const ends = ruleTail.slice(0, last.length);
        const end = last.slice(last.length - ends.length);
        const isSame = String(first.slice(0, begins.length)) === String(begins) && String(end) === String(ends);
        // The end of an unusual path is shorter than a long segment.
        if (isSame || end.join("").length < 200) expect(fitsRule(begins, ends), path).toBe(isSame);
        expect(fitsRule(first, last), path).toBe(true);
        expect(fitsRule(first, [before, ...last]), path).toBe(true);
        for (const reading of readingsOf(path)) expect(reading.length).toBeLessThan(66);
      },
    ),
    runs(800),
  );
});

test.each([
  ["/v1/api/login", [{ path: "/login", unknown: "before" }], true],
  ["/login", [{ path: "/login", unknown: "before" }], true],
  ["/v1/:x", [{ path: "/login", unknown: "before" }], true],
  ["/v1/api", [{ path: "/login", unknown: "before" }], false],
  ["/users/:id/reset", [{ path: "/users", unknown: "after" }], true],
  ["/users", [{ path: "/users", unknown: "after" }], true],
  ["/posts/:id", [{ path: "/users", unknown: "after" }], false],
  ["/en/login", [{ path: "/login" }, { path: "/en/login" }], true],
  ["/en", [{ path: "/login" }, { path: "/en/login" }], false],
  ["/en/login/x", [{ path: "/login" }, { path: "/en/login" }], false],
] as const)("the path %s and a request whose path may be %j: %s", (path, possible, expected) => {
  const index = new MatchIndex([{ match: compileMatch("rule", { path }) }]);
  expect(index.find({ method: "GET", path: readingsOf(possible), header: () => undefined }).length === 1).toBe(expected);
});
