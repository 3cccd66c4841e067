import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { clientKey, consumeAll, createLimiter, type FloodgateEvent, fixedWindow, type Policy, type Store } from "../../src/index.js";
import { FaultyStore } from "../faulty-store.js";

// The clock stands still, so that no window ends within a test.
beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => void vi.useRealTimers());

const policy = fixedWindow({ limit: 3, window: "1m" });
const limiterOn = (store: Store<"sync">, of: Policy = policy) => createLimiter({ name: "api", policy: of, store });

describe("close", () => {
  const other = fixedWindow({ limit: 5, window: "1m" });

  it("gives the name back to the store, once", () => {
    const store = simpleStore();
    const [first, second] = [limiterOn(store), limiterOn(store)];
    expect(() => limiterOn(store, other)).toThrow(expect.objectContaining({ code: "FLOODGATE_NAME_TAKEN" }));
    first.close();
    first.close();
    expect(() => limiterOn(store, other)).toThrow(expect.objectContaining({ code: "FLOODGATE_NAME_TAKEN" }));
    second.close();
    expect(limiterOn(store, other).consume("k").remaining).toBe(4);
  });

  it("gives the name back to the fallback too", () => {
    const options = { name: "api", store: simpleStore(), onStoreError: simpleStore() };
    createLimiter({ ...options, policy }).close();
    expect(createLimiter({ ...options, policy: other }).consume("k").remaining).toBe(4);
  });

  it("keeps the counts: a module that is reloaded goes on with them", () => {
    const store = simpleStore();
    const limiter = limiterOn(store);
    limiter.consume("k");
    limiter.close();
    expect(limiterOn(store).consume("k").remaining).toBe(1);
  });
});

describe("a client without a key", () => {
  const missingKeyIp = "203.0.113.9";

  it("is blocked, looked at and reset, but not consumed: the JSON of a request could name any client", () => {
    const limiter = limiterOn(simpleStore());
    const json = JSON.parse(`{ "missingKeyIp": "${missingKeyIp}" }`);
    const refusal = expect.objectContaining({ code: "FLOODGATE_INVALID_KEY", message: expect.stringMatching(/^`consume` takes a key/) });
    expect(() => limiter.consume(json)).toThrow(refusal);
    expect(() => consumeAll([{ limiter, key: json }])).toThrow(refusal);
    limiter.block({ missingKeyIp }, "1m");
    expect(limiter.peek({ missingKeyIp }).allowed).toBe(false);
    limiter.reset({ missingKeyIp });
    expect(limiter.peek({ missingKeyIp }).allowed).toBe(false);
    limiter.unblock({ missingKeyIp });
    expect(limiter.peek({ missingKeyIp }).allowed).toBe(true);
  });
});

describe("block", () => {
  it.each([60, 0, -1, "soon", undefined, Number.NaN])("needs a duration, which %s is not", (duration) => {
    const limiter = limiterOn(simpleStore());
    expect(() => limiter.block("k", duration as never)).toThrow(expect.objectContaining({ code: "FLOODGATE_INVALID_DURATION" }));
    expect(limiter.peek("k").allowed).toBe(true);
  });

  it("answers nothing, at once or by promise as the store does", async () => {
    const limiter = limiterOn(simpleStore());
    expect([limiter.block("k", "1m"), limiter.unblock("k")]).toEqual([undefined, undefined]);
    const store = new FaultyStore(simpleStore());
    const async = createLimiter({ name: "api", policy, store });
    expect(await Promise.all([async.block("k", "1m"), async.unblock("k")])).toEqual([undefined, undefined]);
  });

  it("fails as the store does, even where decisions are made without it", () => {
    const fault = new Error("away");
    const fail = (): never => {
      throw fault;
    };
    const limiter = createLimiter({ name: "api", policy, store: { ...simpleStore(), block: fail, unblock: fail }, onStoreError: "allow" });
    expect(() => limiter.block("k", "1m")).toThrow(fault);
    expect(() => limiter.unblock("k")).toThrow(fault);
  });
});

it("a decision says how many units of its limit are used", () => {
  const limiter = limiterOn(simpleStore());
  expect([limiter.peek("k").used, limiter.consume("k", { cost: 2 }).used, limiter.peek("k").used]).toEqual([0, 2, 2]);
  expect([limiter.consume("k", { cost: 2 }).used, limiter.consume("k").used]).toEqual([2, 3]);
  const charged = limiter.consume("other");
  limiter.settle("other", charged, 5);
  expect(limiter.peek("other")).toMatchObject({ used: 3, remaining: 0 });
});

it("a cost that is not in an object is refused, not taken for one unit", () => {
  const limiter = limiterOn(simpleStore());
  expect(() => limiter.consume("user:42", 3 as never)).toThrow("Write limiter.consume(key, { cost: 3 }).");
  expect(() => limiter.consume("user:42", { points: 3 } as never)).toThrow("consume has no option `points`. Write cost: 3.");
  expect(() => limiter.consume("user:42", null as never)).toThrow("consume takes an object of options");
  expect(limiter.consume("user:42", {}).remaining).toBe(2);
  expect(limiter.consume("user:42", { cost: undefined } as never).remaining).toBe(1);
});

it("options with inherited properties charge their cost", () => {
  const options: { cost?: number } = Object.create({ trace: "on" });
  options.cost = 2;
  expect(limiterOn(simpleStore()).consume("user:42", options).remaining).toBe(1);
});

describe("clientKey", () => {
  it("is the key of a middleware: one for an IPv4 address, one for the network of an IPv6 address, and for that network itself", () => {
    for (const ip of ["192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1:443"]) expect(clientKey(ip)).toBe("192.0.2.1");
    for (const ip of ["2001:db8:0:1ff::1", "[2001:DB8:0:101:ffff::]:443", "2001:db8:0:100::/56"]) {
      expect(clientKey(ip)).toBe("2001:db8:0:100::/56");
    }
    expect(clientKey("2001:db8:0:1ff::1", { ipv6Prefix: 64 })).toBe("2001:db8:0:1ff::/64");
  });

  it("limits a client that has a whole network of addresses", () => {
    const limiter = limiterOn(simpleStore());
    const passed = Array.from({ length: 1000 }, (_, i) => limiter.consume(clientKey(`2001:db8::${i.toString(16)}`)).allowed);
    expect(passed.filter(Boolean)).toHaveLength(3);
  });

  it.each([undefined, "", "unknown", "192.0.2.1, 192.0.2.2", 42])("is an error for %j, which is no address", (ip) => {
    expect(() => clientKey(ip as string)).toThrow(expect.objectContaining({ code: "FLOODGATE_NO_CLIENT_IP" }));
  });

  it("takes a prefix of 1 to 128 bits", () => {
    for (const ipv6Prefix of [0, 129, 1.5, Number.NaN]) expect(() => clientKey("::1", { ipv6Prefix })).toThrow(/`ipv6Prefix` must be/);
  });
});

describe("an IPv6 address as a key", () => {
  const warned = (use: (limiter: ReturnType<typeof limiterOn>) => void): string[] => {
    const events: FloodgateEvent[] = [];
    use(
      createLimiter({
        name: "api",
        policy,
        store: simpleStore(),
        onEvent: (event) => void (event.type !== "request" && events.push(event)),
      }),
    );
    return events.flatMap((event) => (event.type === "warning" ? [`${event.code}: ${event.message}`] : []));
  };
  const address = "2001:db8:1:2:3:4:5:6";

  it("is warned of once, alone, in a tuple and among several limits", () => {
    for (const key of [address, [address, "login"], "[2001:db8::1]:443", "2001:db8::1"]) {
      const told = warned((limiter) => {
        for (let i = 0; i < 3; i++) limiter.consume(key);
      });
      expect(told).toHaveLength(1);
      expect(told[0]).toMatch(/^FLOODGATE_KEY_PER_ADDRESS: The limiter "api" .*2001:db8.* Write limiter.consume\(clientKey\(ip\)\)/);
    }
    expect(warned((limiter) => void consumeAll([{ limiter, key: address }]))).toHaveLength(1);
  });

  it("is told on the console, once, while nobody listens", () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    try {
      const limiter = createLimiter({ name: "heard by nobody", policy, store: simpleStore() });
      for (let i = 0; i < 3; i++) limiter.consume(address);
      expect(warn.mock.calls).toEqual([[expect.stringContaining("FLOODGATE_KEY_PER_ADDRESS")]]);
    } finally {
      warn.mockRestore();
    }
  });

  it.each([
    clientKey(address),
    [clientKey(address), "login"],
    "192.0.2.1",
    "::ffff:192.0.2.1",
    "user:42:a:b",
    "2345::7",
    "12::34:56",
    "urn:isbn:0451450523",
    42,
  ])("is not seen in %j", (key) => {
    expect(warned((limiter) => void limiter.consume(key))).toEqual([]);
  });
});
