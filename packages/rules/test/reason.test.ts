import { expect, test } from "vitest";
import { messageOf, reasonOf } from "../src/reason.js";

class TimeoutError extends Error {}

test.each<[unknown, string, string]>([
  [new Error("no route to host"), "no route to host", "no route to host"],
  [new Error("The socket was closed."), "The socket was closed.", "The socket was closed"],
  // As Node says that it has tried several addresses of a host.
  [Object.assign(new AggregateError([]), { code: "ECONNREFUSED" }), "ECONNREFUSED", "ECONNREFUSED"],
  // As node-redis says that it has not connected in time.
  [new TimeoutError(), "TimeoutError", "TimeoutError"],
  ["down", "down", "down"],
  [undefined, "undefined", "undefined"],
])("%o says something in any case", (error, message, reason) => {
  expect(messageOf(error)).toBe(message);
  expect(reasonOf(error)).toBe(reason);
});
