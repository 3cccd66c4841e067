import { setImmediate } from "node:timers/promises";
import { type Decision, type FloodgateEvent, fixedWindow, leakyBucket, observe, type Store } from "@floodgate/core";
import { isRejection, isUnchecked, type RequestEvent, resultOf, usedOf } from "@floodgate/core/rules";
import { mostRestrictive } from "@floodgate/core/store";
import { rateLimit } from "@floodgate/hono";
import { type DecisionLine, decisionLog, explainHeader } from "@floodgate/metrics/decisions";
import { memoryStore } from "@floodgate/store-memory";
import fc from "fast-check";
import { Hono } from "hono";
import { expect, it } from "vitest";
import { Collector } from "../../dashboard/src/collect/collector.js";
import { StoreCounts } from "../../dashboard/src/collect/latencies.js";
import { wholeRequests } from "../../dashboard/src/contract.js";
import { watchShadowRules } from "../../simulator/src/index.js";
import { type Figures, startExporters } from "./exporters.js";

// Random traffic: whoever shows numbers shows those of the decisions that were made, and of what the stores hold in the end.

const key = fc.constantFrom("ann", "bob", "vip");
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("request" as const),
      key: fc.option(key, { nil: undefined }),
      plan: fc.constantFrom("", "", "pro", "none"),
      cost: fc.constantFrom("1", "1", "0", "2"),
      real: fc.constantFrom("", "0", "4"),
      status: fc.constantFrom(200, 200, 500),
      skip: fc.constantFrom("", "", "", "1"),
    }),
  },
  fc.record({ do: fc.constantFrom("block" as const, "unblock" as const, "charge" as const, "consume" as const), key }),
  fc.record({ do: fc.constant("wait" as const), ms: fc.integer({ min: -2000, max: 4000 }) }),
  fc.record({ do: fc.constantFrom("fail" as const, "work" as const, "listen" as const) }),
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

let runs = 0;

async function check(steps: readonly Step[], onStoreError: "allow" | "deny" | "fallback"): Promise<void> {
  const run = runs++;
  let nowMs = Date.UTC(2026, 0, 1, 12);
  const clock = (): number => nowMs;
  let isDown = false;
  const memory = memoryStore({ clock });
  const store: Store<"sync"> = new Proxy(memory, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...parts: unknown[]) => {
        if (isDown && /^(consume|consumeAll|settle|block|unblock)$/.test(String(name))) throw new Error("down");
        return value.apply(target, parts);
      };
    },
  });
  const fallback = memoryStore({ clock });
  const name = (text: string): string => `${text}-${run}`;
  const common = { store, onStoreError: onStoreError === "fallback" ? fallback : onStoreError, onEvent: () => undefined } as const;
  const day = (limit: number) => fixedWindow({ limit, window: "1d" });
  const first = rateLimit({
    ...common,
    skip: (c) => c.req.header("x-skip") === "1",
    plan: (c) => c.req.header("x-plan"),
    costs: {
      asked: (c) => Number(c.req.header("x-cost")),
      real: (c) => (c.req.header("x-real") ? Number(c.req.header("x-real")) : undefined),
    },
    rules: [
      {
        name: name("users"),
        key: "header:x-key",
        policy: day(6),
        plans: { pro: day(12), none: day(0) },
        ban: { after: 2, within: "1m", for: "3s" },
        exempt: { keys: ["vip"] },
        onMissingKey: "skip",
        refundWhen: "5xx",
      },
      {
        name: name("shadow"),
        key: "header:x-key",
        policy: day(5),
        mode: "shadow",
        cost: "asked",
        settle: "real",
        ban: { after: 1, within: "1m", for: "2s" },
      },
      { name: name("slow"), key: "global", policy: leakyBucket({ capacity: 50, leak: 500, every: "1s" }) },
      { name: name("fast"), key: "global", policy: leakyBucket({ capacity: 50, leak: 1000, every: "1s" }), cost: "asked" },
    ],
  });
  const second = rateLimit({ ...common, name: name("second"), key: "header:x-key", onMissingKey: "reject", policy: day(8) });
  const limiters = [...first.limiters.values(), ...second.limiters.values()];

  const heard: FloodgateEvent[] = [];
  const lines: DecisionLine[] = [];
  const exporters = startExporters();
  const collector = new Collector(clock, () => new StoreCounts());
  const watch = watchShadowRules();
  let stopSome: (() => void) | undefined;
  let some: FloodgateEvent[] = [];
  let from = 0;
  const stopListening = (): void => {
    stopSome?.();
    if (stopSome !== undefined) expect(some).toEqual(heard.slice(from));
    stopSome = undefined;
  };
  const stops = [
    observe((event) => heard.push(event)),
    decisionLog((line) => lines.push(line), { passed: 1, rejectedPerSecond: 10_000 }),
    explainHeader(() => true),
    observe(collector.listen),
    () => watch.stop(),
    stopListening,
    () => first.close(),
    () => second.close(),
  ];

  const app = new Hono<{ Variables: { rateLimit?: Decision } }>();
  app.get("/", first, second, (c) => c.text("ok", Number(c.req.header("x-status")) as 200));

  const take = async (step: Step): Promise<void> => {
    const users = first.limiters.get(name("users"));
    switch (step.do) {
      case "request": {
        const { key, plan, cost, real, status, skip } = step;
        const before = heard.length;
        const response = await app.request("/", {
          headers: {
            ...(key && { "x-key": key }),
            "x-plan": plan,
            "x-cost": cost,
            "x-real": real,
            "x-status": `${status}`,
            "x-skip": skip,
          },
        });
        await response.text();
        // It is settled at the end of the body, some promises later.
        await setImmediate();
        checkRequest(heard.slice(before), response);
        break;
      }
      case "wait":
        nowMs += step.ms;
        break;
      case "listen":
        if (stopSome !== undefined) return stopListening();
        from = heard.length;
        some = [];
        stopSome = observe((event) => some.push(event));
        break;
      case "fail":
      case "work":
        isDown = step.do === "fail";
        break;
      default:
        try {
          if (step.do === "block") users?.block(step.key, "2s");
          else if (step.do === "charge") users?.charge(step.key, 2);
          else users?.[step.do](step.key);
        } catch (error) {
          expect((error as Error).message).toBe("down");
        }
    }
  };

  try {
    for (const each of steps) await take(each);
    stopListening();
    nowMs += 61_000;
    collector.moveToNow();

    // What a model counts from the events.
    const expected: Figures = {};
    const count = (id: keyof Figures, series: string, by = 1): void => {
      if (by === 0) return;
      expected[id] ??= {};
      const all = expected[id];
      all[series] = ((all[series] as number) ?? 0) + by;
    };
    const whole: Record<string, number> = {};
    const units: Record<string, number> = {};
    const addUnits = (name: string, more: number): void => {
      units[name] = (units[name] ?? 0) + more;
    };
    const shadow = { requests: 0, limited: 0 };
    let rejections = 0;
    const blocks = new Map<string, unknown>();
    for (const event of heard) {
      if ("storeMs" in event) {
        const { name, decision, charged } = event;
        const result = resultOf(event);
        count("requests", `${name} ${result}`);
        count("unitsRequested", `${name} ${result}`, decision.cost);
        count("unitsCharged", name, charged);
        addUnits(name, charged);
        if (event.shadow && !isUnchecked(decision)) shadow.requests++;
        if (event.shadow && result === "shadow-limited") shadow.limited++;
        if (isRejection(result) || result === "shadow-limited") rejections++;
        if (!decision.degraded) blocks.set(`${name} ${event.key}`, decision.blocked);
      } else if (event.type === "request") {
        const { name = "", result, replaces } = event;
        if (replaces !== undefined) count("outcomes", `${replaces.name ?? ""} ${replaces.result}`, -1);
        count("outcomes", `${name} ${result}`);
        if (replaces !== undefined) whole[replaces.result] = (whole[replaces.result] as number) - 1;
        whole[result] = (whole[result] ?? 0) + 1;
      } else if (event.type === "exempt") count("requests", `${event.name} exempt`);
      else if (event.type === "missing-key") count("requests", `${event.name} ${event.rejected ? "missing-key" : "skipped"}`);
      else if (event.type === "unblocked") blocks.set(`${event.name} ${event.key}`, undefined);
      else if (event.type === "refunded") addUnits(event.name, -event.units);
      else if (event.type === "settled") addUnits(event.name, event.units);
      else if (event.type === "charged") {
        addUnits(event.name, event.units);
        count("unitsCharged", event.name, event.units);
      }
    }
    for (const series of Object.values(expected)) for (const [name, value] of Object.entries(series)) if (value === 0) delete series[name];

    const figures = await exporters.openTelemetry();
    expect(await exporters.prometheus()).toEqual(figures);
    for (const id of ["requests", "unitsRequested", "unitsCharged", "outcomes"] as const)
      expect(figures[id] ?? {}).toEqual(expected[id] ?? {});

    const totals = new Map(collector.totals().map((total) => [total.rule, total]));
    for (const { name: rule } of limiters) {
      const total = totals.get(rule);
      const sum = (counts: object | undefined = {}): number => Object.values(counts).reduce<number>((a, b) => a + b, 0);
      const ofRule = Object.entries(expected.requests ?? {}).filter(([series]) => series.startsWith(`${rule} `));
      expect(sum(total?.counts)).toBe(sum(Object.fromEntries(ofRule)));
      expect(total?.counts.limited ?? 0).toBe(expected.requests?.[`${rule} limited`] ?? 0);
    }
    expect(collector.rejections.summary().total).toBe(rejections);
    for (const [id, block] of blocks) expect(collector.blockOf(...(id.split(" ") as [string, string]))).toEqual(block);
    const { skipped = 0, uncounted = 0, exempt = 0, ...others } = whole;
    const shown = { ...others, exempt: exempt + skipped + uncounted };
    expect({ ...totals.get(wholeRequests)?.counts }).toEqual(Object.fromEntries(Object.entries(shown).filter(([, value]) => value > 0)));

    expect(lines.length).toBe(heard.filter(({ type }) => type === "request").length);
    const watched = watch.simulation().rules.find((rule) => rule.name === name("shadow"));
    expect([watched?.requests, watched?.limited]).toEqual([shadow.requests, shadow.limited]);

    // What the stores hold.
    isDown = false;
    for (const limiter of limiters) {
      if (limiter.policy.algorithm !== "fixed-window") continue;
      let used = 0;
      for (const text of ["ann", "bob", "vip", "missing-key-ip:127.0.0.1"]) {
        used += heldOf(memory, limiter, text) + (onStoreError === "fallback" ? heldOf(fallback, limiter, text) : 0);
      }
      expect([limiter.name, used]).toEqual([limiter.name, units[limiter.name] ?? 0]);
    }
  } finally {
    for (const stop of stops) stop();
    await exporters.stop();
  }

  function heldOf(of: Store<"sync">, limiter: object, key: string): number {
    const { state } = of.keyState((limiter as unknown as { limit: Parameters<typeof of.keyState>[0] }).limit, key);
    return state.kind === "windows" ? state.windows.reduce((sum, { count }) => sum + count, 0) : 0;
  }

  function checkRequest(events: readonly FloodgateEvent[], response: Response): void {
    const requests = events.filter((event): event is RequestEvent => event.type === "request");
    const last = requests.at(-1) as RequestEvent;
    expect(last.rejected).toBe(response.status === 429 || response.status === 503);
    for (const [i, event] of requests.entries()) {
      expect(event.replaces).toBe(requests[i - 1]);
      const { decision } = event;
      const line = lines[lines.length - requests.length + i] as DecisionLine;
      expect([line.result, line.rejected, line.rule]).toEqual([event.result, event.rejected, event.name]);
      if (decision === undefined) continue;
      const all = decision.decisions as readonly Decision[];
      const enforced = all.filter(({ name: rule }) => rule !== name("shadow"));
      const delayMs = Math.max(...enforced.map((made) => made.delayMs));
      if (delayMs > 0) expect(decision.delayMs).toBe(delayMs);
      else if (enforced.length > 0) expect(decision).toBe(mostRestrictive(enforced));
      expect(line.rules.map(({ used, remaining }) => [used, remaining])).toEqual(
        all.map((made) => (isUnchecked(made) ? [undefined, undefined] : [usedOf(made), made.remaining])),
      );
      // A block or a ban takes nothing.
      for (const made of events) {
        if (!("storeMs" in made) || made.decision.blocked === undefined || made.decision.degraded) continue;
        const limiter = limiters.find(({ name }) => name === made.name) as (typeof limiters)[number];
        const used = line.rules.find(({ rule }) => rule === made.name)?.used ?? 0;
        if (all.includes(made.decision)) expect(used).toBe(Math.min(heldOf(memory, limiter, made.key), made.decision.limit));
      }
      const limits = response.headers.get("RateLimit") ?? "";
      for (const made of enforced)
        expect(limits.includes(`"${made.name}";r=${made.remaining}`), `${made.name} in ${limits}`).toBe(!made.degraded);
      const explained = response.headers.get("RateLimit-Explain") ?? "";
      for (const made of all) {
        const counts = isUnchecked(made) ? "" : `used=${usedOf(made)};remaining=${made.remaining};`;
        expect(explained).toMatch(new RegExp(`"${made.name}";[^,]*;cost=${made.cost};limit=${made.limit};${counts}retry=`));
      }
    }
  }
}

it.each(["allow", "deny", "fallback"] as const)("everybody shows the same numbers, with onStoreError %s", async (onStoreError) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), (steps) => check(steps, onStoreError)),
    { numRuns: 40 },
  );
});
