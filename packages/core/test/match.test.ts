import fc from "fast-check";
import { expect, test } from "vitest";
import { compileMatch, type Match } from "../src/rules/match.js";

const fits = (match: Match, method: string, path: string): boolean => compileMatch("rule", match)?.fits(method, path) ?? true;

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
  ["/api/*", "/api/a/b/c", true],
  ["/api/*", "/api", true],
  ["/api/*", "/apix", false],
  ["/a/*/z", "/a/b/c/z", true],
  ["/a/*/z", "/a/b/c", false],
  ["*".replace("*", "/*"), "/anything/at/all", true],
  ["/posts", "/%", false],
])("the path %s and a request for %s: %s", (path, request, expected) => {
  expect(fits({ path }, "GET", request)).toBe(expected);
});

test.each([
  ["/users/1", "/users/:id"],
  ["/Users/1/", "/users/:id"],
  ["/posts/1", "/posts/:id"],
  ["/posts/1/likes", "/posts/*"],
  ["/", undefined],
])("of several paths, the pattern of %s is %s", (path, pattern) => {
  expect(compileMatch("rule", { path: ["/users/:id", "/posts/:id", "/posts/*"] })?.pattern(path)).toBe(pattern);
});

test("GET covers HEAD, and methods are matched whatever their case in the rule", () => {
  expect(fits({ method: "get" }, "HEAD", "/")).toBe(true);
  expect(fits({ method: ["POST", "PUT"] }, "GET", "/")).toBe(false);
});

test("any path can be matched against any pattern without a fault", () => {
  const segment = fc.oneof(fc.constantFrom(":id", "*", "a", "b", "%zz"), fc.stringMatching(/^[a-z]{0,3}$/));
  fc.assert(
    fc.property(
      fc.array(segment),
      fc.string(),
      (segments, path) => typeof fits({ path: `/${segments.join("/")}` }, "GET", path) === "boolean",
    ),
  );
});

test.each([
  [{ path: "posts" }, /begins with "\/"/],
  [{ path: "/files/*.png" }, /a segment is text, a `:name` or a `\*` alone/],
  [{ method: "" }, /must be an HTTP method/],
  [{ route: "/posts" } as Match, /no option `route`/],
])("%o is no match", (match, message) => {
  expect(() => compileMatch("rule", match)).toThrow(message);
});
