import { EventEmitter } from "node:events";
import { expect, it } from "vitest";
import { memoryStore } from "../../../store-memory/src/index.js";
import { HeldRequests, type NodeAnswered, type Outcome, passInTurn, RateLimit, type RequestReader } from "../../src/adapter.js";
import { fixedWindow } from "../../src/index.js";
import { reader } from "../reader.js";

const policy = fixedWindow({ limit: 1, window: "1m" });

/** Reads a request without an address. */
const withoutAddress = (hasLeft: boolean): RequestReader<object> => ({ ...reader, clientIp: () => undefined, hasLeft: () => hasLeft });

it("a request without an address is held, and so never served, if its client has left; else it is an error", () => {
  const limitOf = (hasLeft: boolean) => new RateLimit("rateLimit", { policy }, [], withoutAddress(hasLeft), memoryStore);
  const { action, delayMs, checks } = limitOf(true).decide({}) as ReturnType<RateLimit<object>["fault"]>;
  expect([action, delayMs > 1e9, checks]).toEqual(["pass", true, []]);
  expect(() => limitOf(false).decide({})).toThrow(expect.objectContaining({ code: "FLOODGATE_NO_CLIENT_IP" }));
});

it("other faults of a request whose client has left are errors", () => {
  const fault = new Error("key");
  const key = (): never => {
    throw fault;
  };
  const limit = new RateLimit("rateLimit", { policy, key }, [], withoutAddress(true), memoryStore);
  expect(() => limit.decide({})).toThrow(fault);
});

it("in shadow mode, a request whose client has left passes at once", () => {
  for (const key of ["ip", (_: object, { ip }: { ip: string }) => ip] as const) {
    const limit = new RateLimit(
      "rateLimit",
      { policy, key, mode: "shadow", onEvent: () => undefined },
      [],
      withoutAddress(true),
      memoryStore,
    );
    expect(limit.decide({})).toMatchObject({ action: "pass", delayMs: 0 });
  }
});

it.each([
  { headersSent: false, status: 499 },
  { headersSent: true, status: 200 },
])(
  "loggers see the status $status of a request that was held when its client left, if headersSent is $headersSent",
  ({ headersSent, status }) => {
    const socket = Object.assign(new EventEmitter(), { destroyed: false });
    const response: NodeAnswered = Object.assign(new EventEmitter(), { statusCode: 200, headersSent, writableEnded: false, writableFinished: false, socket, req: { socket } }); // biome-ignore format: a row
    const served: string[] = [];
    void passInTurn(response, { delayMs: 60_000 } as Outcome, new HeldRequests(), () => served.push("served"));
    socket.emit("close");
    expect([response.statusCode, served]).toEqual([status, []]);
  },
);
