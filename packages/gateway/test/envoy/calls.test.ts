import { entryValue, RateLimit } from "@floodgate/core/adapter";
import { memoryStore } from "@floodgate/store-memory";
import fc from "fast-check";
import { expect, it } from "vitest";
import { runs } from "../../../../test/runs.js";
import { descriptorRequests } from "../../src/envoy/descriptor-request.js";
import { decideDescriptors } from "../../src/service/descriptors.js";
import { type GatewayRequest, gatewayReader } from "../../src/service/request.js";

interface Rule {
  readonly name: string;
  readonly limit: number;
  readonly pro: number | undefined;
  /** The value that the entry `path` must have. */
  readonly path: string | undefined;
  readonly key: "global" | "ip" | "descriptor:user";
  readonly cost: number;
  readonly isShadow: boolean;
  readonly missing: "skip" | "reject";
  readonly exempt: string | undefined;
}

/** The value of each key, if there is an entry for it. */
interface Descriptor {
  readonly path: string | undefined;
  readonly user: string | undefined;
  readonly remote_address: string | undefined;
  readonly tier: string | undefined;
  readonly hits: number | undefined;
}

const maybe = <T>(...values: T[]): fc.Arbitrary<T | undefined> => fc.constantFrom(...values, undefined);
const rule: fc.Arbitrary<Rule> = fc.record({
  name: fc.constantFrom("a", "b", "c"),
  limit: fc.constantFrom(0, 2, 5, 12),
  pro: maybe(0, 5, 20),
  path: maybe("/x"),
  key: fc.constantFrom("global", "ip", "descriptor:user"),
  cost: fc.integer({ min: 1, max: 2 }),
  isShadow: fc.boolean(),
  missing: fc.constantFrom("skip", "reject"),
  exempt: maybe("ann"),
});
const descriptor: fc.Arbitrary<Descriptor> = fc.record({
  path: maybe("/x", "/y"),
  user: maybe("ann", "bob"),
  remote_address: maybe("203.0.113.1", "203.0.113.2"),
  tier: maybe("pro", "free"),
  hits: maybe(0, 1, 3),
});
const call = fc.record({
  descriptors: fc.array(descriptor, { minLength: 1, maxLength: 4 }),
  hitsAddend: fc.nat(2),
  isUsage: fc.boolean(),
});

/** What one rule counts for one descriptor; undefined if it does not count it, and `"reject"` if it has no key. */
function asked(rule: Rule, { path, user, remote_address, tier }: Descriptor): { key: string; limit: number } | "reject" | undefined {
  if (rule.path !== undefined && path !== rule.path) return undefined;
  if (rule.key === "descriptor:user" && user === undefined) return undefined;
  const key = rule.key === "global" ? "global" : rule.key === "ip" ? remote_address : user;
  if (key === undefined) return rule.missing === "reject" && !rule.isShadow ? "reject" : undefined;
  if (key === rule.exempt) return undefined;
  return { key, limit: (tier === "pro" ? rule.pro : undefined) ?? rule.limit };
}

/** Decides calls as the documentation says. */
class Model {
  readonly #used = new Map<string, number>();

  /** Whether each descriptor is allowed. */
  decide(
    rules: readonly Rule[],
    { descriptors, hitsAddend, isUsage }: { descriptors: Descriptor[]; hitsAddend: number; isUsage: boolean },
  ) {
    const counts = new Map<string, { rule: Rule; cost: number; looks: number; limit: number; places: number[] }>();
    const keyless = new Set<number>();
    for (const [place, one] of descriptors.entries()) {
      for (const rule of rules) {
        const ask = asked(rule, one);
        if (ask === "reject") keyless.add(place);
        if (ask === undefined || ask === "reject") continue;
        const id = `${rule.name} ${ask.key}`;
        const hits = one.hits ?? Math.max(1, hitsAddend);
        if (isUsage && ask.limit > 0) this.#use(id, rule.cost * hits);
        const count = counts.get(id) ?? { rule, cost: 0, looks: 0, limit: ask.limit, places: [] };
        counts.set(id, count);
        count.cost += rule.cost * hits;
        count.looks = rule.cost;
        count.limit = Math.min(count.limit, ask.limit);
        count.places.push(place);
      }
    }
    if (isUsage) return { passes: true, allowed: descriptors.map(() => true) };
    if (keyless.size > 0) return { passes: false, allowed: descriptors.map((_, place) => !keyless.has(place)) };
    const enforced = [...counts].filter(([, { rule }]) => !rule.isShadow);
    const zeros = enforced.filter(([, { limit }]) => limit === 0);
    const over = (id: string, { cost, looks, limit }: { cost: number; looks: number; limit: number }): boolean =>
      (this.#used.get(id) ?? 0) + (cost || looks) > limit;
    const exceeded = zeros.length > 0 ? zeros : enforced.filter(([id, count]) => over(id, count));
    if (exceeded.length === 0) for (const [id, count] of counts) if (!over(id, count)) this.#use(id, count.cost);
    const rejected = new Set(exceeded.flatMap(([, { places }]) => places));
    return { passes: exceeded.length === 0, allowed: descriptors.map((_, place) => !rejected.has(place)) };
  }

  #use(id: string, units: number): void {
    this.#used.set(id, (this.#used.get(id) ?? 0) + units);
  }
}

it("calls with any descriptors are decided as a simple model does, and charge all limits or none", async () => {
  const sets = fc.uniqueArray(rule, { selector: ({ name }) => name, minLength: 1, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(sets, fc.array(call, { minLength: 1, maxLength: 12 }), async (rules, calls) => {
      const store = memoryStore({ maxKeys: 1000, clock: () => 1e12 });
      const set = rules.map(({ name, limit, pro, path, key, cost, isShadow, missing, exempt }) => ({
        name,
        policy: { algorithm: "fixed-window", limit, window: "365d" } as const,
        match: { domain: "edge", ...(path !== undefined && { descriptor: { path } }) },
        key,
        cost,
        mode: isShadow ? ("shadow" as const) : ("enforce" as const),
        onMissingKey: missing,
        ...(pro !== undefined && { plans: { pro: { limit: pro } } }),
        ...(exempt !== undefined && { exempt: { keys: [exempt] } }),
      }));
      const live = { current: { rules: set }, subscribe: () => () => undefined };
      const plan = ({ descriptor }: GatewayRequest) => descriptor && entryValue(descriptor, "tier");
      const limit = new RateLimit("test", { store, plan, rules: live, onEvent: () => undefined }, [], gatewayReader, () => store);
      const model = new Model();
      for (const sent of calls) {
        const descriptors = sent.descriptors.map(({ hits, ...values }) => ({
          entries: Object.entries({ ...values, ...(sent.isUsage && { floodgate: "charge" }) }).flatMap(([key, value]) =>
            value === undefined ? [] : { key, value },
          ),
          limit: null,
          hitsAddend: hits === undefined ? null : { value: hits },
          isNegativeHits: false,
        }));
        const requests = descriptorRequests({ domain: "edge", descriptors, hitsAddend: sent.hitsAddend });
        const { outcome, statuses } = await decideDescriptors(limit, requests as Exclude<typeof requests, string>);
        expect({ passes: outcome.action === "pass", allowed: statuses.map(({ allowed }) => allowed) }).toEqual(model.decide(rules, sent));
      }
      limit.close();
    }),
    runs(1000),
  );
});
