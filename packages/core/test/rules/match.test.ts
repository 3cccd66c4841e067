import fc from "fast-check";
import { expect, test } from "vitest";
import { runs } from "../../../../test/runs.js";
import { readingsOf } from "../../src/requests/path.js";
import { mountedPaths } from "../../src/requests/request-reader.js";
import { compileMatch, type Match } from "../../src/rules/match.js";
import { MatchIndex } from "../../src/rules/match-index.js";
import { fits, placesOf, type Request } from "./matching.js";

test.each([
  ["/posts", "/posts", true],
  ["/posts", "/POSTS/", true],
  ["/posts", "/%70osts", true],
  ["/posts", "/posts?page=2", true],
  ["/posts", "/posts/1", false],
  ["/posts", "/", false],
  ["/", "/", true],
  ["/posts/:id", "/posts/1", true],
  ["/posts/:id", "/posts/1/", true],
  ["/posts/:id", "/posts", false],
  ["/posts/:id", "/posts/1/2", false],
  ["/posts/:id", "/posts/a%2Fb", true],
  ["/posts/:id", "//", false],
  ["/:id", "//", true],
  ["/posts/:id", "/posts//", true],
  ["/posts/:id", "/posts/", false],
  ["/api/*", "/api/a/b/c", true],
  ["/api/*", "/api", true],
  ["/api/*", "/apix", false],
  ["/a/*/z", "/a/b/c/z", true],
  ["/a/*/z", "/a/b/c", false],
  ["*".replace("*", "/*"), "/anything/at/all", true],
  ["/posts", "/%", false],
  ["/posts/:id", "/posts/..", true],
  ["/files/*", "/files%2Fa", true],
  ["/files/*", "/files%5ca", true],
  ["/files/*", "/files\\a", true],
  ["/files/*", "/x/../files/a", true],
  ["/files/*", "/x%2F%2e%2E%2Ffiles/a?b", true],
  ["/files/*", "/x\\..\\files\\a", true],
  ["/files/*", "/../../files/.", true],
  ["/files/*", "/x?/../files/a", false],
  ["/files/*", "/files%252Fa", true],
  ["/files/*", "/x/%252e%252e/files/a", true],
  ["/files/*", `/${"x".repeat(2000)}/%252e%252e/files/a`, true],
  ["/files/*", "/%2566iles/a", true],
  ["/files/*", "/%252566%25%36%39les/a", true],
  ["/files/*", `/%${"25".repeat(10)}66iles/a`, true],
  ["/files/*", "/files%2525zz/a", false],
  ["/100%25", "/100%25", true],
  ["/100%25/:x", "/100%25/a", true],
  ["/files/*", "/%c0%ae/files/a", false],
  ["/files/*", "/files%zz/a", false],
  ["/files/*", "/%zz/../files%2Fa", true],
  ["/files/*", "/files%00/a", false],
  ["/files/*", "/.files/a", false],
  ["/.well-known/:name", "/.well-known/security.txt", true],
  ["/a%2Fb", "/a%2Fb.", true],
  ["/a%2Fb", "/a%2fb;x", true],
])("the path %s and a request for %s: %s", (path, request, expected) => {
  expect(fits({ path }, "GET", request)).toBe(expected);
});

test.each([
  ["/users/1", "/users/:id"],
  ["/Users/1/", "/users/:id"],
  ["/posts/1", "/posts/:id"],
  ["/posts/1/likes", "/posts/*"],
  ["/", undefined],
  ["/posts/a%2Flikes", "/posts/:id"],
  ["/posts%2Fa%2Flikes", "/posts/*"],
  ["/posts/1/../2", "/posts/*"],
  ["/x/../posts/1", "/posts/:id"],
])("of several paths, the pattern of %s is %s", (path, pattern) => {
  expect(compileMatch("rule", { path: ["/users/:id", "/posts/:id", "/posts/*"] }).pattern(readingsOf(path))).toBe(pattern);
});

test("GET covers HEAD, and the case of a rule's method does not matter", () => {
  expect(fits({ method: "get" }, "HEAD", "/")).toBe(true);
  expect(fits({ method: ["POST", "PUT"] }, "GET", "/")).toBe(false);
});

test.each([
  [{ "x-version": "2" }, { "x-version": "2" }, true],
  [{ "X-Version": "2" }, { "x-version": "2" }, true],
  [{ "x-version": "2" }, { "x-version": "3" }, false],
  [{ "x-version": "2" }, {}, false],
  [{ "x-version": ["2", "3"] }, { "x-version": "3" }, true],
  [{ "x-version": true }, { "x-version": "" }, true],
  [{ "x-version": true }, {}, false],
  [{ "x-version": false }, {}, true],
  [{ "x-version": false }, { "x-version": "1" }, false],
  [{ "content-type": "application/json*" }, { "content-type": "application/json; charset=utf-8" }, true],
  [{ "content-type": "*json*" }, { "content-type": "application/json" }, true],
  [{ "x-id": "a*b*a" }, { "x-id": "aba" }, true],
  [{ "x-id": "a*a" }, { "x-id": "a" }, false],
  [{ "x-id": "a*b*b*a" }, { "x-id": "aba" }, false],
  [{ "x-a": "1", "x-b": "2" }, { "x-a": "1", "x-b": "2" }, true],
  [{ "x-a": "1", "x-b": "2" }, { "x-a": "1" }, false],
])("the headers %o and a request with %o: %s", (header, headers, expected) => {
  expect(fits({ header }, "GET", "/", headers)).toBe(expected);
});

/** All texts of these characters. */
const allTexts = (characters: string, longest: number): string[] =>
  longest === 0 ? [""] : ["", ...[...characters].flatMap((first) => allTexts(characters, longest - 1).map((rest) => first + rest))];

test("a header fits a text in which each star stands for any characters", () => {
  for (const pattern of allTexts("ab*", 5)) {
    const reference = new RegExp(`^${pattern.replaceAll("*", ".*")}$`);
    const index = new MatchIndex([{ match: compileMatch("rule", { header: { "x-a": ["c", pattern] } }) }]);
    for (const value of [...allTexts("ab", 4), "c"]) {
      const found = index.find({ method: "GET", path: [], header: () => value }).length === 1;
      if (found !== (value === "c" || reference.test(value))) expect.fail(`"${value}" and "${pattern}": ${found}`);
    }
  }
});

/** A reference implementation of `Match`: one rule at a time, with a regular expression per path. */
function saysYes({ method, path, header }: Match, request: Request): boolean {
  const list = (value: string | readonly string[]): readonly string[] => (typeof value === "string" ? [value] : value);
  if (method !== undefined && !list(method).some((one) => one === request.method || (one === "GET" && request.method === "HEAD")))
    return false;
  if (Object.entries(header ?? {}).some(([name, value]) => request.headers?.[name] !== value)) return false;
  if (path === undefined) return true;
  const asked = `${(request.path as string).toLowerCase().replace(/\/+$/, "")}/`;
  return list(path).some((pattern) => {
    const segments = pattern.split("/").filter((segment) => segment !== "");
    const source = segments.map((segment) => (segment === "*" ? "(?:/[^/]+)*" : segment.startsWith(":") ? "/[^/]+" : `/${segment}`));
    return new RegExp(`^${source.join("")}/$`).test(asked);
  });
}

const pathOf = (segment: fc.Arbitrary<string>) => fc.array(segment, { maxLength: 4 }).map((segments) => `/${segments.join("/")}`);
const word = fc.constantFrom("a", "b", "c");
const someMatch: fc.Arbitrary<Match> = fc.record(
  {
    method: fc.oneof(fc.constantFrom("GET", "POST"), fc.subarray(["GET", "POST", "PUT"], { minLength: 1 })),
    path: fc.oneof(
      pathOf(fc.oneof(word, fc.constantFrom(":id", "*"))),
      fc.array(pathOf(fc.oneof(word, fc.constantFrom(":id", "*"))), { minLength: 1, maxLength: 3 }),
    ),
    header: fc.dictionary(fc.constantFrom("x-a", "x-b"), fc.constantFrom("1", "2"), { maxKeys: 2 }),
  },
  { requiredKeys: [] },
);
const someRequest = fc.record({
  method: fc.constantFrom("GET", "HEAD", "POST", "PUT", "DELETE"),
  path: pathOf(word),
  headers: fc.dictionary(fc.constantFrom("x-a", "x-b"), fc.constantFrom("1", "2", "3"), { maxKeys: 2 }),
});

test("many rules together match exactly like each rule alone, in order", () => {
  fc.assert(
    fc.property(fc.array(fc.option(someMatch, { nil: undefined }), { maxLength: 12 }), someRequest, (matches, request) => {
      const expected = matches.flatMap((match, place) => (match === undefined || saysYes(match, request) ? [place] : []));
      expect(placesOf(matches, request)).toEqual(expected);
    }),
    runs(2000),
  );
});

test("matching any path against any pattern never throws", () => {
  const segment = fc.oneof(fc.constantFrom(":id", "*", "a", "b", "%zz"), fc.stringMatching(/^[a-z]{0,3}$/));
  fc.assert(
    fc.property(
      fc.array(segment),
      fc.string(),
      (segments, path) => typeof fits({ path: `/${segments.join("/")}` }, "GET", path) === "boolean",
    ),
  );
});

test("a header of any name can be matched, even constructor or __proto__", () => {
  const header = JSON.parse('{ "__proto__": true, "constructor": "a" }');
  expect(fits({ header }, "GET", "/", JSON.parse('{ "constructor": "a" }'))).toBe(false);
  expect(fits({ header: { ["constructor"]: false } }, "GET", "/")).toBe(true);
});

test("a pattern of many stars takes at most its length times the path's length", () => {
  const path = `/${"*/a/".repeat(200)}b`;
  expect(fits({ path }, "GET", "/a".repeat(2000))).toBe(false);
});

test.each([
  [{ path: "posts" }, /begins with "\/"/],
  [{ path: 5 } as never, /begins with "\/", but was 5/],
  [{ method: 5 } as never, /must be an HTTP method, but was 5/],
  [{ header: null } as never, /must name headers and their values, but was null/],
  [{ header: ["x-a"] } as never, /must name headers and their values, but was/],
  [{ header: { "x-a": 5 } } as never, /takes for "x-a" a string .* but was given 5/],
  // In Express 4, the route `/a|b` serves every path that begins with `/a` or ends with `b`.
  [{ path: "/a|b" }, /"a\|b" in "\/a\|b" has a "\|".*is written %7C/],
  [{ path: "/files/*.png" }, /a segment is text, `:name` or `\*`, but/],
  [{ path: "/posts?page=2" }, /matched without the query.*Write path: "\/posts"/],
  [{ path: [] }, /`match.path` is an empty array, which matches no request/],
  [{ method: "" }, /must be an HTTP method/],
  [{ method: "PSOT" }, /Did you mean "POST"/],
  [{ header: { "x y": "1" } }, /is not a valid header name/],
  [{ header: { "x-a": " 1" } }, /without spaces around it.*Write header: \{ "x-a": "1" \}/],
  [{ header: { "x-a": [] } }, /is an empty array/],
  [{ header: "x-a" } as never, /must name headers and their values/],
  [{ route: "/posts" } as Match, /no option `route`/],
])("%o is no match", (match, message) => {
  expect(() => compileMatch("rule", match)).toThrow(message);
});

test("the first request of a Koa app matches behind a mount that it passed, and of which the app then removed the path", () => {
  // Mounted at /en. The target went through a mount at /v1, and lost /en and /v1 to the app.
  const possible = mountedPaths("/en/en/v1/v1/items/login", "/v1/items/login", "/v1/v1/items/login");
  expect(placesOf([{ path: "/en/v1/items/login" }], { method: "POST", path: possible })).toEqual([0]);
});

test("a method matches in any case", () => {
  expect([fits({ method: "POST" }, "post", "/"), fits({ method: "get" }, "hEaD", "/"), fits({ method: "POST" }, "get", "/")]).toEqual([
    true,
    true,
    false,
  ]);
});
