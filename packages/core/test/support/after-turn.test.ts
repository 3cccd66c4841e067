import { afterEach, expect, it, vi } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { RateLimit } from "../../src/adapter.js";
import { afterTurn } from "../../src/support/runtime.js";
import { reader } from "../reader.js";

type AfterTurn = typeof afterTurn;
const faked = ["nextTick", "queueMicrotask", "setImmediate", "setTimeout"] as const;
const runs = (after: AfterTurn) => new Promise<string>((resolve) => after(() => resolve("ran")));

afterEach(() => {
  vi.useRealTimers();
});

it("work after a turn runs although a test has faked nextTick, microtasks and timers, as Jest does by default", async () => {
  vi.useFakeTimers({ toFake: [...faked] });
  await expect(runs(afterTurn)).resolves.toBe("ran");
});

it("work after a turn runs although a test had faked them before this was loaded", async () => {
  vi.resetModules();
  const { nextTick } = process;
  process.nextTick = Object.assign(() => undefined, { clock: {} });
  const loaded = import("../../src/support/runtime.js");
  try {
    const { afterTurn } = await loaded;
    expect(process.nextTick).not.toBe(nextTick);
    await expect(runs(afterTurn)).resolves.toBe("ran");
  } finally {
    process.nextTick = nextTick;
  }
});

it("work after a turn runs and after reading, in the edge runtime of Next.js, where Node's functions throw", async () => {
  vi.resetModules();
  const { process, setImmediate } = globalThis;
  vi.stubGlobal("EdgeRuntime", "edge-runtime");
  const refuse = (): never => {
    throw new Error("A Node.js API is used");
  };
  const loaded = import("../../src/support/runtime.js");
  Object.assign(globalThis, { process: { env: {}, nextTick: refuse, getBuiltinModule: refuse }, setImmediate: refuse });
  try {
    const { afterReading, afterTurn, nodeCrypto } = await loaded;
    expect(nodeCrypto()).toBeUndefined();
    await expect(runs(afterTurn)).resolves.toBe("ran");
    await expect(runs(afterReading)).resolves.toBe("ran");
  } finally {
    Object.assign(globalThis, { process, setImmediate });
    vi.unstubAllGlobals();
  }
});

it("limits that an app has made before its requests cause no warning while a test has faked microtasks", async () => {
  vi.useFakeTimers({ toFake: [...faked] });
  const app = {};
  const warnings: string[] = [];
  const onEvent = (event: { readonly type: string; readonly code?: string }) => event.type === "warning" && warnings.push(event.code ?? "");
  const options = { limit: 5, window: "1m", key: "global", onEvent } as const;
  const limits = Array.from(
    { length: 20 },
    () => new RateLimit("rateLimit", options, [], { ...reader, app: () => app }, () => simpleStore()),
  );
  await Promise.resolve();
  for (const limit of limits) limit.decide({});
  expect(warnings).toEqual([]);
});
