import { type RedisServer, startRedis } from "@floodgate/test-servers";
import { status } from "@grpc/grpc-js";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { closeAll, descriptor, start } from "./client.js";

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterEach(closeAll);
afterAll(() => redis.stop());

const rules = `
  - { name: per-user, match: { domain: edge }, key: "descriptor:user", policy: { algorithm: fixed-window, limit: 30, window: 365d } }
  - { name: all, match: { descriptor: { path: true } }, key: global, policy: { algorithm: token-bucket, capacity: 100, refill: 1, every: 365d } }`;

it("two instances on one Redis count together, exactly", async () => {
  const settings = { redis: `redis://127.0.0.1:${redis.port}`, timeoutMs: 5000 };
  const [one, other] = [await start(rules, settings), await start(rules, settings)];
  const channels = [one.connect(), other.connect(), one.connect(), other.connect()];
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, i) =>
      (channels[i % 4] as (typeof channels)[0]).ask({ domain: "edge", descriptors: [descriptor(`user=${i % 3}`), descriptor("path=/")] }),
    ),
  );
  const allowed = answers.filter(({ code }) => code === "OK");
  expect(allowed).toHaveLength(90);
  const rest = await (channels[1] as (typeof channels)[0]).ask({
    domain: "edge",
    descriptors: [{ ...descriptor("path=/"), hits_addend: { value: 0 } }],
  });
  expect(rest.statuses[0]).toMatchObject({ code: "OK", remaining: 10 });
});

it("while Redis is down, a call passes without numbers, or is UNAVAILABLE with onStoreError: deny", async () => {
  const down = { redis: "redis://127.0.0.1:1", timeoutMs: 50 };
  const sent = { domain: "edge", descriptors: [descriptor("user=1")] };
  const open = await (await start(rules, down)).connect().ask(sent);
  expect(open).toMatchObject({ code: "OK", headers: {}, statuses: [{ code: "OK", limit: undefined }] });
  const closed = (await start(rules, { ...down, onStoreError: "deny" })).connect();
  await expect(closed.ask(sent)).rejects.toMatchObject({ code: status.UNAVAILABLE });
  expect((await closed.ask({ domain: "mesh", descriptors: [descriptor("a=b")] })).code).toBe("OK");
});
