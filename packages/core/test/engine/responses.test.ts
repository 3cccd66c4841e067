import assert from "node:assert/strict";
import { fixedWindow } from "../../src/index.js";
import { describe, it } from "./app.js";

describe("responses", () => {
  const policy = fixedWindow({ limit: 2, window: "1m" });

  it("the default policy is a sliding window: no second quota at the window's edge", async (web) => {
    const app = await web.start({ limit: 10, window: "1m" });
    web.nowMs += 44_999;
    assert.deepEqual(new Set(await app.statuses(10)), new Set([200]));
    web.nowMs += 1;
    assert.deepEqual(await app.statuses(1), [429]);
  });

  it("a client is served again when its wait is over", async (web) => {
    const app = await web.start({ policy });
    await app.statuses(2);
    const retryAfter = Number((await app.get()).headers["retry-after"]);
    web.nowMs += (retryAfter - 1) * 1000;
    assert.equal((await app.get()).status, 429);
    web.nowMs += 1000;
    assert.equal((await app.get()).status, 200);
  });

  it("the middleware's limiter resets a key", async (web) => {
    const app = await web.start({ policy, key: (request) => request.header("x-user") });
    const [ann, bob] = [{ "x-user": "ann" }, { "x-user": "bob" }];
    assert.deepEqual(await app.statuses(3, "/", ann), [200, 200, 429]);
    assert.deepEqual(await app.statuses(3, "/", bob), [200, 200, 429]);
    await app.limits[0]?.limiter.reset("ann");
    assert.equal((await app.get("/", ann)).status, 200);
    assert.equal((await app.get("/", bob)).status, 429);
  });

  it("concurrent requests do not exceed the limit", async (web) => {
    const app = await web.start({ policy });
    const responses = await Promise.all(Array.from({ length: 10 }, () => app.get()));
    assert.equal(responses.filter(({ status }) => status === 200).length, 2);
  });
});
