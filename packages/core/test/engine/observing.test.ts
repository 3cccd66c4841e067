import assert from "node:assert/strict";
import { type FloodgateEvent, fixedWindow, observe, tokenBucket } from "../../src/index.js";
import { inventory } from "../../src/rules.js";
import { describe, gate, it, later } from "./app.js";

/** `observe` and `inventory`: what a process tells and shows of all its limits. */
const rules = [
  { name: "requests", policy: fixedWindow({ limit: 4, window: "1m" }) },
  { name: "shadow", mode: "shadow" as const, policy: tokenBucket({ capacity: 2, refill: 1, every: "1m" }), cost: 2 },
  { name: "users", key: "header:x-user" as const, onMissingKey: "skip" as const, policy: fixedWindow({ limit: 9, window: "1m" }) },
  { name: "others", exempt: { ips: ["127.0.0.1", "::1"] }, policy: fixedWindow({ limit: 9, window: "1m" }) },
];

/** An observer that records events, and what ends it. */
function observer(): { heard: FloodgateEvent[]; stop: () => void } {
  const heard: FloodgateEvent[] = [];
  return { heard, stop: observe((event) => event.type !== "request" && heard.push(event)) };
}

const summary = (events: readonly FloodgateEvent[]): string[] =>
  events.map((event) => [event.type, "name" in event && event.name, "charged" in event && event.charged].join(" "));

describe("observe", () => {
  for (const [kind, isLater] of [
    ["synchronous", false],
    ["asynchronous", true],
  ] as const) {
    it(`hears of each rule of each request what it did, with a store that is ${kind}`, async (web) => {
      const app = await web.start({ rules, store: isLater ? later(web.store) : web.store });
      await app.statuses(1);
      const { heard, stop } = observer();
      const ofOthers = ["exempt others false", "missing-key users false"];
      await app.statuses(1);
      assert.deepEqual(summary(heard).sort(), ["allowed requests 1", "shadow-limited shadow 0", ...ofOthers].sort());
      heard.length = 0;
      await app.statuses(1, "/", { "x-user": "ann" });
      const byAnn = ["allowed requests 1", "allowed users 1", "exempt others false", "shadow-limited shadow 0"];
      assert.deepEqual(summary(heard).sort(), byAnn);
      await app.statuses(1);
      heard.length = 0;
      assert.deepEqual(await app.statuses(1), [429]);
      assert.deepEqual(summary(heard).sort(), ["limited requests 0", "shadow-limited shadow 0", ...ofOthers].sort());
      stop();
      heard.length = 0;
      await app.statuses(1);
      assert.deepEqual(heard, []);
    });
  }

  it("hears the same as `onEvent`, and one listener that is both hears each event once", async (web) => {
    const { onEvent } = web.listen("limited");
    const { heard, stop } = observer();
    const stopSame = observe(onEvent);
    const app = await web.start({ limits: [{ rules, onEvent }] });
    await app.statuses(6);
    stopSame();
    stop();
    assert.equal(heard.length, 6 * rules.length);
    assert.deepEqual(web.events, heard);
  });

  it("that fails does not fail requests", async (web) => {
    const { warn } = console;
    console.warn = () => undefined;
    const stop = observe(() => assert.fail("the observer fails"));
    const { heard, stop: stopOther } = observer();
    try {
      const app = await web.start({ rules });
      assert.deepEqual(await app.statuses(5), [200, 200, 200, 200, 429]);
      assert.equal(heard.length, 5 * rules.length);
    } finally {
      stop();
      stopOther();
      console.warn = warn;
    }
  });

  it("hears no decision that was asked before it listened", async (web) => {
    const { opened, open } = gate();
    const { opened: asked, open: ask } = gate();
    const slow = later(web.store);
    const consume = slow.consume.bind(slow);
    slow.consume = (...check) => {
      ask();
      return opened.then(() => consume(...check));
    };
    const app = await web.start({ policy: fixedWindow({ limit: 4, window: "1m" }), store: slow });
    const first = app.get();
    await asked;
    const { heard, stop } = observer();
    open();
    await first;
    assert.deepEqual(heard, []);
    await app.get();
    stop();
    assert.deepEqual(summary(heard), ["allowed default 1"]);
  });
});

describe("inventory", () => {
  it("shows each rule in words until its middleware is closed, and its store once", async (web) => {
    const match = { method: "POST", path: ["/a", "/b"], header: { "x-beta": true } };
    const ban = { after: 5, within: "1m", for: "1h" } as const;
    const policy = fixedWindow({ limit: 4, window: "1m" });
    const app = await web.start({ rules: [...rules, { name: "all", key: ["ip", "header:x-user"], match, ban, policy }] });
    const mine = () =>
      inventory().limits.filter(({ limiter }) => limiter.store === web.store || app.limits[0]?.limiters.get(limiter.name) === limiter);
    assert.deepEqual(
      mine().map(({ name, shadow, rule }) => [name, shadow, rule?.match, rule?.key, rule?.ban]),
      [
        ["requests", false, "all requests", "ip", undefined],
        ["shadow", true, "all requests", "ip", undefined],
        ["users", false, "all requests", "header:x-user", undefined],
        ["others", false, "all requests", "ip", undefined],
        ["all", false, "POST /a or /b with x-beta", "ip, header:x-user", "1h after 5 rejections within 1m"],
      ],
    );
    assert.equal(inventory().stores.filter(({ store }) => store === web.store).length, 1);
    app.limits[0]?.close();
    assert.deepEqual(mine(), []);
  });
});
