import { expect, test } from "vitest";
import { messageOf, reasonOf } from "../src/rules-error.js";

class TimeoutError extends Error {}

test.each<[unknown, string, string]>([
  [new Error("no route to host"), "no route to host", "no route to host"],
  [new Error("The socket was closed."), "The socket was closed.", "The socket was closed"],
  // Node's error after it has tried all addresses of a host.
  [Object.assign(new AggregateError([]), { code: "ECONNREFUSED" }), "ECONNREFUSED", "ECONNREFUSED"],
  // node-redis's error when it could not connect in time.
  [new TimeoutError(), "TimeoutError", "TimeoutError"],
  ["down", "down", "down"],
  [undefined, "undefined", "undefined"],
])("%o has a readable message", (error, message, reason) => {
  expect(messageOf(error)).toBe(message);
  expect(reasonOf(error)).toBe(reason);
});
