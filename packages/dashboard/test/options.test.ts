import { FloodgateError } from "@floodgate/core";
import { describe, expect, it } from "vitest";
import { dashboard as express } from "../src/express.js";
import { dashboard as hono } from "../src/hono.js";
import { dashboard as koa } from "../src/koa.js";

const mistakes: readonly (readonly [options: unknown, code: string, says: string])[] = [
  [null, "FLOODGATE_INVALID_OPTION", "takes an object"],
  [{ authorise: () => true }, "FLOODGATE_UNKNOWN_OPTION", "Did you mean `authorize`?"],
  [{ authorize: true }, "FLOODGATE_INVALID_OPTION", "`authorize` must be a function"],
  [{ actions: true }, "FLOODGATE_CONFLICTING_OPTIONS", "`actions` needs `authorize`"],
  [{ actions: "yes", authorize: () => true }, "FLOODGATE_INVALID_OPTION", "`actions` must be true or false"],
  [{ showKeys: 1 }, "FLOODGATE_INVALID_OPTION", "`showKeys` must be true or false"],
  [{ title: "" }, "FLOODGATE_INVALID_OPTION", "`title` must be a text"],
  [{ title: "x".repeat(101) }, "FLOODGATE_INVALID_OPTION", "`title` must be a text"],
  [{ prefix: "a{b}" }, "FLOODGATE_INVALID_OPTION", "`prefix` must be a text"],
  [{ redis: "redis://:secret@host" }, "FLOODGATE_INVALID_OPTION", "`redis` must be a client"],
  [{ redis: null }, "FLOODGATE_INVALID_OPTION", "`redis` must be a client"],
];

describe.each([
  ["Express", express],
  ["Koa", koa],
  ["Hono", hono],
])("the options of dashboard on %s", (_, dashboard) => {
  it.each(mistakes)("are refused when they are given: %j", (options, code, says) => {
    const make = (): unknown => (dashboard as (options: unknown) => unknown)(options);
    expect(make).toThrow(expect.objectContaining({ code, message: expect.stringContaining(says) }));
    expect(make).toThrow(FloodgateError);
    expect(make).not.toThrow(/secret/);
  });
});

it.each(["_floodgate", "/_floodgate/", "/", "/a?b", 5])("Koa's path %j is refused", (path) => {
  expect(() => koa({ path: path as string })).toThrow(/`path` must begin with a slash/);
});
