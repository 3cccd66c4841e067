import assert from "node:assert/strict";
import { fixedWindow } from "../../src/index.js";
import { describe, it, self } from "./app.js";

/** `exempt`: clients and keys that are not counted. */
const policy = fixedWindow({ limit: 1, window: "1m" });
const from = (ip: string) => ({ "x-client": ip });

describe("exemptions", () => {
  for (const [kind, clientIp] of [
    ["at once", (request: { header(name: string): string | undefined }) => request.header("x-client")],
    ["by promise", async (request: { header(name: string): string | undefined }) => request.header("x-client")],
  ] as const) {
    it(`skip clients in an address range and count all others (address known ${kind})`, async (web) => {
      const app = await web.start({ policy, clientIp, exempt: { ips: ["10.0.0.0/8", "2001:db8:0:1::/64", "192.0.2.7"] } });
      for (const ip of ["10.1.2.3", "::ffff:10.9.9.9", "2001:db8:0:1::5", "192.0.2.7"]) {
        assert.deepEqual(await app.statuses(3, "/", from(ip)), [200, 200, 200], ip);
        assert.equal((await app.get("/", from(ip))).headers["ratelimit"], undefined);
      }
      for (const ip of ["11.0.0.1", "2001:db8:0:2::5", "192.0.2.8"]) assert.deepEqual(await app.statuses(2, "/", from(ip)), [200, 429], ip);
    });
  }

  it("compare the full address, not the ipv6Prefix that groups clients", async (web) => {
    const app = await web.start({ policy, clientIp: (request) => request.header("x-client"), exempt: { ips: ["2001:db8::1"] } });
    assert.deepEqual(await app.statuses(2, "/", from("2001:db8::1")), [200, 200]);
    assert.deepEqual(await app.statuses(2, "/", from("2001:db8::2")), [200, 429]);
  });

  it("skip keys in the form that the rule's key has", async (web) => {
    const keys = { user: (request: { header(name: string): string | undefined }) => request.header("x-user") };
    const rules = [
      { name: "user", policy, key: "user", exempt: { keys: [42, "root"] } },
      { name: "pair", policy: fixedWindow({ limit: 100, window: "1m" }), key: ["ip", "user"], exempt: { keys: [[self, "root"]] } },
    ];
    const app = await web.start({ rules, keys });
    assert.deepEqual(await app.statuses(2, "/", { "x-user": "42" }), [200, 200]);
    assert.match((await app.get("/", { "x-user": "42" })).headers["ratelimit"] as string, /^"pair";r=97/);
    assert.equal((await app.get("/", { "x-user": "root" })).headers["ratelimit"], undefined);
    assert.deepEqual(await app.statuses(2, "/", { "x-user": "ann" }), [200, 429]);
  });

  it("beside rules apply to all rules, in addition to each rule's own", async (web) => {
    const rules = [
      { name: "one", policy, exempt: { ips: ["10.0.0.0/8"] } },
      { name: "other", policy },
    ];
    const app = await web.start({ rules, clientIp: (request) => request.header("x-client"), exempt: { ips: ["192.0.2.0/24"] } });
    assert.equal((await app.get("/", from("192.0.2.1"))).headers["ratelimit"], undefined);
    assert.match((await app.get("/", from("10.0.0.1"))).headers["ratelimit"] as string, /^"other";r=0;t=\d+$/);
  });

  for (const [wrong, message] of [
    [{ ips: ["10.0.0.0/33"] }, /addresses and ranges, but one was "10.0.0.0\/33"/],
    [{ ips: "10.0.0.0/8" }, /`exempt.ips` must be an array.*Write exempt: \{ ips: \["10.0.0.0\/8"\] \}/],
    [{ keys: [{}] }, /A key must be/],
    [{ keys: "internal" }, /`exempt.keys` must be an array, but was a string\. Write exempt: \{ keys: \[\.\.\.\] \}/],
    [{ ip: ["10.0.0.1"] }, /Did you mean `ips`/],
    [[], /takes an object of options/],
  ] as const) {
    it(`reject the option ${JSON.stringify(wrong)}`, async (web) => {
      await assert.rejects(web.start({ policy, exempt: wrong as never }), (error: Error) => message.test(error.message));
    });
  }
});
