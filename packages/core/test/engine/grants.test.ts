import assert from "node:assert/strict";
import { fixedWindow } from "../../src/index.js";
import { describe, it, self } from "./app.js";

/** `grants`: another plan for one key until a time. */
const policy = fixedWindow({ limit: 1, window: "1h" });
const plans = { pro: { limit: 3 } };
const until = (nowMs: number): string => new Date(nowMs + 60_000).toISOString();
const ann = { "x-user": "ann" };

describe("a grant", () => {
  it("gives a key a plan until its time, on the count that the key has", async (web) => {
    const grants = [{ key: "ann", plan: "pro", until: until(web.nowMs) }];
    const app = await web.start({ rules: [{ name: "posts", policy, plans, grants, key: "header:x-user" }] });
    assert.deepEqual(await app.statuses(4, "/", ann), [200, 200, 200, 429]);
    assert.deepEqual(await app.statuses(2, "/", { "x-user": "bob" }), [200, 429]);
    web.nowMs += 60_000;
    assert.equal((await app.get("/", ann)).status, 429);
    assert.deepEqual(await app.statuses(2, "/", { "x-user": "cy" }), [200, 429]);
  });

  it("comes before the plan of the request", async (web) => {
    const grants = [{ key: "ann", plan: "pro", until: until(web.nowMs) }];
    const rule = { name: "posts", policy, plans: { ...plans, trial: { limit: 2 } }, grants, key: "header:x-user" } as const;
    const app = await web.start({ rules: [rule], plan: () => "trial" });
    assert.deepEqual(await app.statuses(4, "/", ann), [200, 200, 200, 429]);
  });

  it("takes each kind of key: an address in any notation, a tuple, and the digest of a secret", async (web) => {
    const until = "2100-01-01";
    const keys = { user: (request: { header(name: string): string | undefined }) => request.header("x-user") };
    const digests: string[] = [];
    const seen = await web.start({
      rules: [{ name: "seen", policy, key: "secret:user" }],
      keys,
      onEvent: (event) => void ("key" in event && digests.push(event.key as string)),
    });
    await seen.get("/", ann);
    for (const [key, granted] of [
      ["ip", `::ffff:${self}`],
      [
        ["ip", "user"],
        [self, "ann"],
      ],
      ["secret:user", digests[0] as string],
    ] as const) {
      const grants = [{ key: granted, plan: "pro", until }];
      const app = await web.start({ limits: [{ rules: [{ name: "own", policy, plans, grants, key }], keys }], ownStores: true });
      assert.deepEqual(await app.statuses(4, "/", ann), [200, 200, 200, 429], String(key));
    }
  });

  for (const [wrong, message] of [
    [
      { key: "ann", plan: "prp", until: "2100-01-01" },
      /rules\[0\]: `plan` of a grant must be one of the rule's plans \(pro\), but was "prp"/,
    ],
    [{ key: "ann", plan: "pro", until: "soon" }, /`until` of a grant must be a date, or a time with its zone, but was "soon"/],
    [{ key: "ann", plan: "pro", until: "2100-01-01T00:00:00" }, /a time with its zone/],
    [{ key: "ann", plan: "pro", until: "2100-13-01" }, /a time with its zone/],
    [{ key: "ann", plan: "pro", until: "2100-02-30" }, /must be a date, or a time with its zone, but was "2100-02-30"/],
    [{ key: "ann", plan: "pro", until: "2100-04-31T00:00:00Z" }, /but was "2100-04-31T00:00:00Z"/],
    [{ key: {}, plan: "pro", until: "2100-01-01" }, /A key must be/],
    [{ key: "ann", plan: "pro" }, /`until` of a grant/],
    [{ user: "ann" }, /has no option/],
  ] as const) {
    it(`${JSON.stringify(wrong)} is refused when the rules are read`, async (web) => {
      const rules = [{ name: "posts", policy, plans, grants: [wrong as never], key: "header:x-user" as const }];
      await assert.rejects(web.start({ rules }), { message });
    });
  }

  it("needs a list, and a rule with plans", async (web) => {
    const rule = { name: "posts", policy, key: "header:x-user" } as const;
    await assert.rejects(web.start({ rules: [{ ...rule, plans, grants: {} as never }] }), /`grants` must be an array/);
    const grants = [{ key: "ann", plan: "pro", until: "2100-01-01" }];
    await assert.rejects(
      web.start({ rules: [{ ...rule, grants }] }),
      /one of the rule's plans \(the rule has none\), but was "pro"\. Write plans: \{ pro: \{ limit: 1000 \} \}\./,
    );
    await assert.rejects(web.start({ rules: [{ ...rule, plans }] }), { code: "FLOODGATE_MISSING_PLAN" });
    assert.equal((await (await web.start({ rules: [{ ...rule, plans, grants: [] }] })).get("/", ann)).status, 200);
  });
});
