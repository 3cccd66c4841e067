import { consumeAll, createLimiter, type Decision, fixedWindow, leakyBucket } from "@floodgate/core";
import { rateLimit } from "@floodgate/hono";
import type { InstrumentId } from "@floodgate/metrics";
import { memoryStore } from "@floodgate/store-memory";
import fc from "fast-check";
import { Hono } from "hono";
import { expect, it } from "vitest";
import { type Distribution, type Figures, startExporters } from "./exporters.js";

// A random history gives the same figures in both exporters, and those that the test counts itself from the decisions that it got.

const keys = ["ann", "bob", "vip"] as const;
const key = fc.constantFrom(...keys);
const cost = fc.integer({ min: 1, max: 3 });

type Step =
  | { do: "consume"; limiter: "window" | "queue"; key: string; cost: number }
  | { do: "consumeAll"; key: string; cost: number }
  | { do: "refund" | "settle"; which: number; cost: number }
  | { do: "request"; path: "/enforced" | "/shadow"; key: string | undefined }
  | { do: "wait"; ms: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant("consume" as const), limiter: fc.constantFrom("window" as const, "queue" as const), key, cost }),
  fc.record({ do: fc.constant("consumeAll" as const), key, cost }),
  fc.record({ do: fc.constantFrom("refund" as const, "settle" as const), which: fc.nat(20), cost: fc.nat(4) }),
  fc.record({
    do: fc.constant("request" as const),
    path: fc.constantFrom("/enforced" as const, "/shadow" as const),
    key: fc.option(key, { nil: undefined }),
  }),
  fc.record({ do: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 700 }) }),
);

let runs = 0;

/** Runs the steps on limits of its own, and counts what they decide. */
class History {
  readonly expected: Figures = {};
  decisions = 0;
  queued = 0;
  #nowMs = Date.UTC(2026, 0, 1);
  readonly #store = memoryStore({ clock: () => this.#nowMs });
  readonly #run = runs++;
  readonly #window = createLimiter({ name: this.#name("window"), policy: fixedWindow({ limit: 7, window: "1s" }), store: this.#store });
  readonly #queue = createLimiter({
    name: this.#name("queue"),
    policy: leakyBucket({ capacity: 5, leak: 4, every: "1s" }),
    store: this.#store,
  });
  /** Decides as the rule in shadow mode does, whose decisions no app sees. */
  readonly #twin = createLimiter({ name: this.#name("twin"), policy: fixedWindow({ limit: 2, window: "1s" }), store: this.#store });
  readonly #charges: { readonly key: string; readonly decision: Decision }[] = [];
  readonly #enforced = rateLimit({
    name: this.#name("enforced"),
    policy: fixedWindow({ limit: 3, window: "1s" }),
    key: "header:x-key",
    onMissingKey: "reject",
    exempt: { keys: ["vip"] },
    store: this.#store,
    onLimited: (_, decision) => {
      if (decision !== undefined) this.#decided(this.#asked(decision));
      return undefined;
    },
  });
  readonly #shadow = rateLimit({
    name: this.#name("shadow"),
    policy: fixedWindow({ limit: 2, window: "1s" }),
    key: "header:x-key",
    onMissingKey: "skip",
    mode: "shadow",
    store: this.#store,
  });
  readonly #app = new Hono()
    .get("/enforced", this.#enforced, (c) => {
      const decision = c.get("rateLimit");
      if (decision !== undefined) this.#decided(this.#asked(decision));
      return c.text("ok");
    })
    .get("/shadow", this.#shadow, (c) => c.text("ok"));

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case "consume":
        this.#charged(
          step.key,
          this.#asked((step.limiter === "window" ? this.#window : this.#queue).consume(step.key, { cost: step.cost })),
        );
        break;
      case "consumeAll": {
        const limiters = [this.#window, this.#queue];
        const { allowed, all, decision } = consumeAll(limiters.map((limiter) => ({ limiter, key: step.key, cost: step.cost })));
        this.#asked((allowed ? all.find(({ delayMs }) => delayMs > 0) : undefined) ?? decision);
        for (const decision of all) if (allowed || !decision.allowed) this.#charged(step.key, decision);
        break;
      }
      case "refund":
      case "settle": {
        const [charge] = this.#charges.splice(step.which, 1);
        if (charge === undefined) break;
        const { key, decision } = charge;
        const limiter = decision.name === this.#window.name ? this.#window : this.#queue;
        if (step.do === "refund") this.#refunded(decision.name, limiter.refund(key, decision));
        else this.#settled(decision.name, limiter.settle(key, decision, step.cost));
        break;
      }
      case "request":
        await this.#request(step.path, step.key);
        break;
      case "wait":
        this.#nowMs += step.ms;
    }
  }

  close(): void {
    for (const { close } of [this.#enforced, this.#shadow]) close();
    for (const limiter of [this.#window, this.#queue, this.#twin]) limiter.close();
  }

  #name(name: string): string {
    return `${name}-${this.#run}`;
  }

  async #request(path: "/enforced" | "/shadow", key: string | undefined): Promise<void> {
    const response = await this.#app.request(path, { headers: key === undefined ? {} : { "x-key": key } });
    if (path === "/shadow") {
      expect(response.status).toBe(200);
      this.#count("outcomes", key === undefined ? " uncounted" : `${this.#name("shadow")} allowed`);
      if (key === undefined) this.#count("requests", `${this.#name("shadow")} skipped`);
      else this.#decided(this.#decided(this.#asked(this.#twin.consume(key))), this.#name("shadow"), true);
    } else if (key === undefined) {
      expect(response.status).toBe(429);
      this.#count("requests", `${this.#name("enforced")} missing-key`);
      this.#count("outcomes", `${this.#name("enforced")} missing-key`);
    } else if (key === "vip") {
      expect(response.status).toBe(200);
      this.#count("requests", `${this.#name("enforced")} exempt`);
      this.#count("outcomes", `${this.#name("enforced")} exempt`);
    }
  }

  /** Counts a whole request by the decision that decided it. */
  #asked(decision: Decision): Decision {
    const { name, allowed, delayMs } = decision;
    this.#count("outcomes", `${name} ${allowed ? (delayMs > 0 ? "delayed" : "allowed") : "limited"}`);
    return decision;
  }

  #charged(key: string, decision: Decision): void {
    this.#decided(decision);
    if (decision.allowed) this.#charges.push({ key, decision });
  }

  #decided(decision: Decision, name = decision.name, shadow = false): Decision {
    const { allowed, cost, delayMs, remaining, limit } = decision;
    const rejected = shadow ? "shadow-limited" : "limited";
    const result = `${name} ${allowed ? (delayMs > 0 ? "delayed" : "allowed") : rejected}`;
    this.decisions++;
    this.#count("requests", result);
    this.#count("unitsRequested", result, cost);
    if (!allowed) return decision;
    this.#count("unitsCharged", name, cost);
    if (remaining / limit < 0.2) this.#count("nearLimit", name);
    if (delayMs > 0) this.queued++;
    return decision;
  }

  #refunded(name: string, units: number): void {
    if (units === 0) return;
    this.#count("refunds", `${name} succeeded`);
    this.#count("unitsRefunded", name, units);
  }

  #settled(name: string, units: number): void {
    if (units === 0) return;
    this.#count("settlements", `${name} succeeded`);
    this.#count("unitsSettled", `${name} ${units > 0 ? "charged" : "refunded"}`, Math.abs(units));
  }

  #count(id: InstrumentId, series: string, by = 1): void {
    this.expected[id] ??= {};
    this.expected[id][series] = ((this.expected[id][series] as number) ?? 0) + by;
  }
}

const counted = [
  "requests",
  "outcomes",
  "nearLimit",
  "unitsRequested",
  "unitsCharged",
  "unitsRefunded",
  "unitsSettled",
  "refunds",
  "settlements",
] as const;

it("a random history gives the figures that its decisions add up to, in both exporters", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const exporters = startExporters();
      const history = new History();
      try {
        // Figures are read in between, and go on from there.
        for (const [i, step] of steps.entries()) {
          await history.take(step);
          if (i % 25 === 20) await Promise.all([exporters.prometheus(), exporters.openTelemetry()]);
        }
        const figures = await exporters.openTelemetry();
        expect(await exporters.prometheus()).toEqual(figures);
        expect(Object.fromEntries(counted.flatMap((id) => (figures[id] === undefined ? [] : [[id, figures[id]]])))).toEqual(
          history.expected,
        );
        expect(countOf(figures.decisionDuration)).toBe(history.decisions);
        expect(countOf(figures.timeInQueue)).toBe(history.queued);
      } finally {
        history.close();
        await exporters.stop();
      }
    }),
    { numRuns: 40 },
  );
});

function countOf(series: Figures[InstrumentId] = {}): number {
  return Object.values(series).reduce<number>((count, value) => count + (value as Distribution).count, 0);
}
