import fc from "fast-check";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { runs } from "../../../../test/runs.js";
import { anyCharacter } from "../../../conformance/test/characters.js";
import type { EventListener, FloodgateEvent } from "../../src/index.js";

interface Request {
  readonly headers?: Readonly<Record<string, string>>;
  readonly trusts?: boolean;
}

const reader = {
  header: (request: Request, name: string) => request.headers?.[name],
  remoteAddress: (): string | undefined => "192.0.2.1",
  clientIp: () => "192.0.2.1",
  trustsProxy: (request: Request) => request.trusts === true,
};

const forwarded: Request = { headers: { "x-forwarded-for": "203.0.113.9" } };
const told: string[] = [];
let lookAtProxy: typeof import("../../src/middleware/setup-observer.js").lookAtProxy;
let warner: typeof import("../../src/events/listeners.js").warner;

/** Looks at requests for one middleware. */
function checkOf(from: typeof reader, onEvent: EventListener | undefined): { look(request: Request, throws: boolean): void } {
  const warn = warner(onEvent);
  return { look: (request, throws) => lookAtProxy(from, warn, request, throws) };
}

/** Reloads the module, so that each test starts as a new process. */
beforeEach(async () => {
  told.length = 0;
  vi.spyOn(console, "warn").mockImplementation((text: string) => void told.push(text));
  vi.resetModules();
  ({ lookAtProxy } = await import("../../src/middleware/setup-observer.js"));
  ({ warner } = await import("../../src/events/listeners.js"));
});

afterEach(() => {
  vi.restoreAllMocks();
});

test("the console gets one warning for all middlewares and requests", () => {
  for (const check of [checkOf(reader, undefined), checkOf(reader, undefined)]) {
    for (let i = 0; i < 3; i++) check.look(forwarded, true);
  }
  expect(told).toHaveLength(1);
  expect(told[0]).toMatch(/^\[floodgate\] FLOODGATE_MISSING_PROXY_SETTING: A request from 192\.0\.2\.1 .* clientIp: \{ trustedHops: 1 \}/);
});

test("listeners get one event per middleware, and the console gets nothing", () => {
  const events: FloodgateEvent[] = [];
  for (let middleware = 0; middleware < 2; middleware++) {
    const check = checkOf(reader, (event) => event.type !== "request" && events.push(event));
    for (let i = 0; i < 3; i++) check.look(forwarded, true);
  }
  expect(events).toHaveLength(2);
  expect(events[0]).toMatchObject({ type: "warning", code: "FLOODGATE_MISSING_PROXY_SETTING" });
  expect(told).toEqual([]);
});

test("a middleware with a listener does not use up the console warning of the others", () => {
  checkOf(reader, () => undefined).look(forwarded, true);
  checkOf(reader, undefined).look(forwarded, true);
  expect(told).toHaveLength(1);
});

test.each<[string, number, Request]>([
  ["X-Forwarded-For", 1, forwarded],
  ["Forwarded", 1, { headers: { forwarded: "for=203.0.113.9" } }],
  ["an empty X-Forwarded-For", 1, { headers: { "x-forwarded-for": "" } }],
  ["X-Forwarded-For where a proxy is trusted", 0, { ...forwarded, trusts: true }],
  ["X-Forwarded-For with the peer alone, as wrappers for AWS Lambda pass it", 0, { headers: { "x-forwarded-for": "192.0.2.1" } }],
  ["X-Forwarded-For that ends with the peer, as behind a CDN", 1, { headers: { "x-forwarded-for": "203.0.113.9, 192.0.2.1" } }],
  ["X-Real-IP", 0, { headers: { "x-real-ip": "203.0.113.9" } }],
  ["no header", 0, {}],
])("%s: %i warnings", (_, times, request) => {
  checkOf(reader, undefined).look(request, true);
  expect(told).toHaveLength(times);
});

test("the warning never quotes a header", () => {
  const messages = new Set<string>();
  fc.assert(
    fc.property(fc.constantFrom("x-forwarded-for", "forwarded"), fc.string({ unit: anyCharacter }), (name, text) => {
      checkOf(reader, (event) => event.type === "warning" && messages.add(event.message)).look({ headers: { [name]: text } }, true);
    }),
    runs(100),
  );
  expect(messages.size).toBe(1);
});

test("there is no warning for a request that is counted by another address than the connection's", () => {
  const events: FloodgateEvent[] = [];
  checkOf({ ...reader, clientIp: () => "203.0.113.9" }, (event) => event.type !== "request" && events.push(event)).look(forwarded, true);
  expect(events).toEqual([]);
});

test("the warning says if the connection has no address", () => {
  checkOf({ ...reader, remoteAddress: () => undefined, clientIp: () => undefined as never }, undefined).look(forwarded, true);
  expect(told[0]).toContain("from an unknown address");
});
