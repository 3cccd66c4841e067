import { checkRules } from "@floodgate/core/rules";
import { encodeKey } from "@floodgate/core/store";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { runs } from "../../../test/runs.js";
import { grantPlan, parseRules, pullRules, pushRules, RulesError, redisRules, withGrant } from "../src/index.js";
import { readYaml } from "../src/yaml.js";
import { ruleSets } from "./arbitraries.js";
import { User } from "./harness.js";

const nowMs = Date.UTC(2026, 0, 1);
const text = `# limits of the shop
rules:
  - name: posts # what users write
    key: user
    limit: 1
    window: 1h
    plans: { pro: { limit: 5 } }

  - { name: pairs, key: [ ip, user ], limit: 1, window: 1h, plans: { pro: { limit: 5 } } }
`;
const pro = { plan: "pro", until: "2027-01-31" };
const ann = { rule: "posts", key: "ann", grant: pro };
const grantsOf = (changed: string, rule = 0) => parseRules(changed).rules[rule]?.grants;

describe("a grant in the text of rules", () => {
  it("is added without a change to what people wrote", () => {
    const changed = withGrant(text, ann, nowMs);
    expect(changed).toBe(
      text.replace("{ limit: 5 } }\n\n", "{ limit: 5 } }\n    grants:\n      - key: ann\n        plan: pro\n        until: 2027-01-31\n\n"),
    );
    expect(grantsOf(changed)).toEqual([{ key: "ann", ...pro }]);
    const inFlow = withGrant(text, { ...ann, rule: "pairs", key: "(203.0.113.9,ann)" }, nowMs);
    expect(inFlow).toContain("grants: [ { key: [ 203.0.113.9, ann ], plan: pro, until: 2027-01-31 } ] }");
    expect(grantsOf(inFlow, 1)).toEqual([{ key: ["203.0.113.9", "ann"], ...pro }]);
  });

  it("replaces the earlier one of its key, and those that are over", () => {
    let changed = text;
    for (const [key, until] of [
      ["ann", "2026-02-01"],
      ["bob", "2026-01-02"],
      ["cy", "2026-03-01"],
      ["ann", "2026-04-01"],
    ] as const)
      changed = withGrant(changed, { ...ann, key, grant: { plan: "pro", until } }, key === "ann" ? Date.UTC(2026, 0, 3) : nowMs);
    expect(grantsOf(changed)).toEqual([
      { key: "cy", plan: "pro", until: "2026-03-01" },
      { key: "ann", plan: "pro", until: "2026-04-01" },
    ]);
  });

  it("replaces one whose key is written in another way, if it is told the texts of keys", () => {
    const before = withGrant(withGrant(text, ann, nowMs), { ...ann, key: "bob" }, nowMs);
    const textOf = (written: unknown) => `secret:${written}`;
    expect(grantsOf(withGrant(before, { ...ann, key: "secret:ann", textOf }, nowMs))).toEqual([
      { key: "bob", ...pro },
      { key: "secret:ann", ...pro },
    ]);
    expect(grantsOf(withGrant(before, { ...ann, key: "secret:ann", grant: undefined, textOf }, nowMs))).toEqual([{ key: "bob", ...pro }]);
  });

  it("is removed without a plan, and the list stays, so that the rule may keep a plan that no request has", () => {
    expect(grantsOf(withGrant(withGrant(text, ann, nowMs), { ...ann, grant: undefined }, nowMs))).toEqual([]);
  });

  it("is written into JSON as JSON", () => {
    const changed = withGrant(JSON.stringify(parseRules(text)), ann, nowMs);
    expect(JSON.parse(changed).rules[0].grants).toEqual([{ key: "ann", ...pro }]);
  });

  it("tells keys of one text apart from those of another type", () => {
    const written = text.replace("    plans:", "    grants: [{ key: 42, plan: pro, until: 2027-01-31 }]\n    plans:");
    expect(grantsOf(withGrant(written, { ...ann, key: "42" }, nowMs))).toEqual([{ key: "42", ...pro }]);
  });

  it.each([
    ["2001:db8::/56", "2001:DB8:0:0:0:0:0:1"],
    ["2001:db8::/56", "2001:DB8::/56"],
    ["2001:db8:1:2::3/128", "2001:db8:1:2::0003"],
    ["203.0.113.9", "::ffff:203.0.113.9"],
    ["(203.0.113.9,ann)", ["::ffff:203.0.113.9", "ann"]],
  ])("of the client %s ends however the file writes its address: %j", (key, written) => {
    const rule = { name: "a", limit: 1, window: "1h", key: Array.isArray(written) ? ["ip", "user"] : "ip", plans: { pro: { limit: 5 } } };
    const other = { key: Array.isArray(written) ? ["203.0.113.9", "bob"] : "203.0.113.8", ...pro };
    const granted = stringify({ rules: [{ ...rule, grants: [{ key: written, ...pro }, other] }] });
    expect(grantsOf(withGrant(granted, { rule: "a", key, grant: undefined }, nowMs))).toEqual([other]);
  });

  const [two, one] = ["2", "1"].map((key) => ({ key, ...pro })) as [object, object];
  const plain = "limit: 1, window: 1h, key: user, plans: { pro: { limit: 5 } }";
  const own = `grants: [{ key: "1", plan: pro, until: 2027-01-31 }]`;
  it.each([
    `rules:\n  - { name: a, ${plain}, ${own.replace("[", "&g [")} }\n  - { name: b, ${plain}, grants: *g }\n`,
    `rules:\n  - { name: a, ${plain}, grants: [&g { key: "1", plan: pro, until: 2027-01-31 }] }\n  - { name: b, ${plain}, grants: [*g] }\n`,
    `rules:\n  - &a { name: a, ${plain}, ${own} }\n  - { <<: *a, name: b }\n`,
    `rules:\n  - &a { name: a, ${plain}, ${own} }\n  - { <<: *a, name: b, grants: [${own.slice("grants: [".length)} }\n`,
    `{ "rules": [{ "name": a, ${plain}, ${own.replace("[", "&g [")} }, { "name": b, ${plain}, "grants": *g }] }`,
  ])("of one rule leaves the rules alone that share its grants by an anchor: %j", (shared) => {
    for (const at of [0, 1]) {
      const rule = ["a", "b"][at] as string;
      const more = parseRules(withGrant(shared, { rule, key: "2", grant: pro }, nowMs)).rules;
      expect([more[at]?.grants, more[1 - at]?.grants]).toEqual([[one, two], [one]]);
      const less = parseRules(withGrant(shared, { rule, key: "1", grant: undefined }, nowMs)).rules;
      expect([less[at]?.grants, less[1 - at]?.grants]).toEqual([[], [one]]);
    }
  });

  it("changes nothing but the grants of its rule, in any rules and in any style", () => {
    const style = fc.record({
      indent: fc.integer({ min: 1, max: 4 }),
      collectionStyle: fc.constantFrom("any" as const, "block", "flow"),
      defaultStringType: fc.constantFrom("PLAIN" as const, "QUOTE_DOUBLE", "QUOTE_SINGLE", "BLOCK_LITERAL", "BLOCK_FOLDED"),
      lineWidth: fc.constantFrom(0, 20, 80),
    });
    fc.assert(
      fc.property(ruleSets, style, fc.nat(), fc.string({ unit: "grapheme" }), (set, style, which, key) => {
        fc.pre(set.rules.length > 0 && checkRules(set).length === 0);
        const text = stringify(set, style);
        // Not every style can write a text of spaces.
        fc.pre(JSON.stringify(readYaml(text).value) === JSON.stringify(set));
        const at = which % set.rules.length;
        const changed = withGrant(text, { rule: set.rules[at]?.name as string, key: encodeKey(key), grant: pro }, nowMs);
        const rules = set.rules.map((rule, i) => (i === at ? { ...rule, grants: [{ key, ...pro }] } : rule));
        expect(readYaml(changed).value).toEqual({ ...set, rules });
      }),
      runs(200),
    );
  });

  it("needs a rule that exists, and a key that is known", () => {
    expect(() => withGrant(text, { ...ann, rule: "none" }, nowMs)).toThrow('There is no rule "none"');
    expect(() => withGrant(text, { ...ann, key: `\\#${"0".repeat(64)}` }, nowMs)).toThrow("only the hash");
  });
});

describe("a grant in Redis", () => {
  let server: RedisServer;
  let redis: Redis;
  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis(server.port, server.host);
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });

  it("is in force in the process that granted it when the call resolves, and in the others soon", async () => {
    await pushRules(redis, "live", text);
    const [here, there] = [await redisRules(redis, "live"), await redisRules(redis, "live")];
    try {
      const user = new User();
      here.subscribe(user);
      await here.grant?.({ ...ann, by: "eve" });
      expect(here.current.rules[0]?.grants).toEqual([{ key: "ann", ...pro }]);
      expect(user.events).toContainEqual({ type: "granted", name: "posts", key: "ann", ...pro, by: "eve" });
      await expect.poll(() => there.current.rules[0]?.grants).toEqual([{ key: "ann", ...pro }]);
    } finally {
      await Promise.all([here.close(), there.close()]);
    }
  });

  it("is not lost to others that are written at the same moment", async () => {
    await pushRules(redis, "many", text);
    await Promise.all(["a", "b", "c", "d"].map((key) => grantPlan(redis, "many", { ...ann, key })));
    const { text: stored = "", version } = (await pullRules(redis, "many")) ?? {};
    expect(
      grantsOf(stored)
        ?.map(({ key }) => key)
        .sort(),
    ).toEqual(["a", "b", "c", "d"]);
    expect(version).toBe("5");
  });

  it("that does not exist is ended without a new version", async () => {
    await pushRules(redis, "ended", text);
    expect(await grantPlan(redis, "ended", { ...ann, grant: undefined })).toBe("1");
    expect(await pullRules(redis, "ended")).toEqual({ text, version: "1" });
  });

  it("is refused with the place in the text if the rule has no such plan, and changes nothing", async () => {
    await pushRules(redis, "bad", text);
    const wrong = grantPlan(redis, "bad", { ...ann, grant: { ...pro, plan: "gold" } });
    await expect(wrong).rejects.toThrow(RulesError);
    await expect(wrong).rejects.toThrow(/one of the rule's plans \(pro\), but was "gold"/);
    expect(await pullRules(redis, "bad")).toEqual({ text, version: "1" });
    await expect(grantPlan(redis, "none", ann)).rejects.toMatchObject({ code: "FLOODGATE_RULES_UNAVAILABLE" });
    await expect(grantPlan(redis, "", ann)).rejects.toThrow("grantPlan: `key` must be the name of a Redis key");
  });
});
