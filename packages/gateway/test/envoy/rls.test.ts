import { afterEach, describe, expect, it, vi } from "vitest";
import { type Answered, closeAll, descriptor, start } from "./client.js";

afterEach(closeAll);

/** No test meets the edge of such a window. */
const year = "window: 365d";
const perAddress = `
  - { name: per-address, match: { domain: edge }, key: "descriptor:remote_address", policy: { algorithm: fixed-window, limit: 3, ${year} } }`;

const address = (last: number) => descriptor(`remote_address=203.0.113.${last}`);
const codes = ({ code, statuses }: Answered): string => `${code}: ${statuses.map((status) => status.code).join(" ")}`;

describe("one descriptor", () => {
  it("is over limit after the limit, and each value has a count of its own", async () => {
    const envoy = (await start(perAddress)).connect();
    for (const remaining of [2, 1, 0]) {
      const answer = await envoy.ask({ domain: "edge", descriptors: [address(1)] });
      expect(codes(answer)).toBe("OK: OK");
      expect(answer.statuses[0]?.remaining).toBe(remaining);
      expect(answer.headers["ratelimit"]).toMatch(new RegExp(`^"per-address";r=${remaining};t=\\d+$`));
      expect(answer.headers["ratelimit-policy"]).toBe('"per-address";q=3;w=31536000');
      expect(answer.headers).not.toHaveProperty("content-type");
      expect(answer.body).toBe("");
    }
    const over = await envoy.ask({ domain: "edge", descriptors: [address(1)] });
    expect(codes(over)).toBe("OVER_LIMIT: OVER_LIMIT");
    expect(over.headers).toMatchObject({ "content-type": "application/problem+json", "cache-control": "no-store" });
    expect(JSON.parse(over.body)).toMatchObject({
      status: 429,
      "violated-policies": ["per-address"],
      "retry-after": Number(over.headers["retry-after"]),
    });
    expect(codes(await envoy.ask({ domain: "edge", descriptors: [address(2)] }))).toBe("OK: OK");
  });

  it("that no rule matches is OK, and has no numbers", async () => {
    const envoy = (await start(perAddress)).connect();
    for (const sent of [
      { domain: "mesh", descriptors: [address(1)] },
      { domain: "edge", descriptors: [descriptor("path=/login")] },
      { domain: "edge", descriptors: [{ entries: [] }] },
    ]) {
      const answer = await envoy.ask(sent);
      expect(answer).toEqual({
        code: "OK",
        statuses: [{ code: "OK", limit: undefined, remaining: 0, resetMs: undefined }],
        headers: {},
        body: "",
      });
    }
  });

  it("takes hits_addend units, and 1 if it is 0", async () => {
    const envoy = (await start(perAddress.replace("limit: 3", "limit: 10"))).connect();
    const remaining = async (hits_addend: number) =>
      (await envoy.ask({ domain: "edge", descriptors: [address(1)], hits_addend })).statuses[0]?.remaining;
    expect(await remaining(0)).toBe(9);
    expect(await remaining(4)).toBe(5);
    expect(await remaining(6)).toBe(5);
    expect(await remaining(5)).toBe(0);
  });

  it("multiplies the rule's cost by hits_addend", async () => {
    const envoy = (await start(perAddress.replace("limit: 3,", "limit: 100,").replace("key:", "cost: 5, key:"))).connect();
    const answer = await envoy.ask({ domain: "edge", descriptors: [address(1)], hits_addend: 3 });
    expect(answer.statuses[0]?.remaining).toBe(85);
  });

  it("records the usage of a stream that is done, beyond the limit too, so that the client is limited from then on", async () => {
    const envoy = (await start(perAddress)).connect();
    const look = async () => codes(await envoy.ask({ domain: "edge", descriptors: [{ ...address(1), hits_addend: { value: 0 } }] }));
    const { entries } = address(1);
    const done = (value: number, ...others: object[]) => {
      const usage = { entries: [...entries, { key: "floodgate", value: "charge" }], hits_addend: { value } };
      return envoy.ask({ domain: "edge", descriptors: [usage, ...(others as [])] });
    };
    expect([await look(), codes(await done(2)), await look(), codes(await done(500)), await look()]).toEqual([
      "OK: OK",
      "OK: OK",
      "OK: OK",
      "OK: OK",
      "OVER_LIMIT: OVER_LIMIT",
    ]);
    await expect(done(1, address(2))).rejects.toThrow("Set `apply_on_stream_done` on the rate limits with that entry");
  });

  it("has hits of its own, which replace those of the request; 0 looks and takes nothing", async () => {
    const envoy = (await start(perAddress)).connect();
    const ask = (value: number | string) =>
      envoy.ask({ domain: "edge", descriptors: [{ ...address(1), hits_addend: { value } }], hits_addend: 3 });
    expect((await ask(0)).statuses[0]).toMatchObject({ code: "OK", remaining: 3 });
    expect((await ask(2)).statuses[0]).toMatchObject({ code: "OK", remaining: 1 });
    expect((await ask(0)).statuses[0]).toMatchObject({ code: "OK", remaining: 1 });
    expect((await ask(1)).statuses[0]).toMatchObject({ code: "OK", remaining: 0 });
    expect(codes(await ask(0))).toBe("OVER_LIMIT: OVER_LIMIT");
    const never = await ask("18446744073709551615");
    expect(codes(never)).toBe("OVER_LIMIT: OVER_LIMIT");
    expect(never.headers).not.toHaveProperty("retry-after");
    expect(never.statuses[0]?.resetMs).toBeUndefined();
  });
});

describe("the current limit", () => {
  it.each([
    ["1s", 1],
    ["60s", 2],
    ["1h", 3],
    ["1d", 4],
    ["7d", 7],
    ["15m", 0],
    ["30d", 0],
  ])("of a window of %s has unit %i", async (window, unit) => {
    const rule = `\n  - { name: api, match: { domain: edge }, key: global, policy: { algorithm: gcra, limit: 1000, window: ${window} } }`;
    const answer = await (await start(rule)).connect().ask({ domain: "edge", descriptors: [address(1)] });
    expect(answer.statuses[0]).toMatchObject({ limit: { requests_per_unit: 1000, unit, name: "api" }, remaining: 999 });
    expect(answer.statuses[0]?.resetMs).toBeGreaterThan(0);
  });

  it("is that of the most restrictive rule", async () => {
    const rules = `${perAddress}
  - { name: all, match: { domain: edge }, key: global, policy: { algorithm: fixed-window, limit: 1000, ${year} } }`;
    const answer = await (await start(rules)).connect().ask({ domain: "edge", descriptors: [address(1)] });
    expect(answer.statuses[0]?.limit?.name).toBe("per-address");
    expect(answer.headers["ratelimit"]).toMatch(/^"per-address";r=2;t=\d+, "all";r=999;t=\d+$/);
  });
});

describe("several descriptors", () => {
  const rules = `${perAddress}
  - { name: login, match: { descriptor: { path: /login } }, key: global, policy: { algorithm: fixed-window, limit: 2, ${year} } }`;
  const login = descriptor("path=/login");

  it("all pass, or nothing is charged; each has its own status, in order", async () => {
    const envoy = (await start(rules)).connect();
    const ask = () => envoy.ask({ domain: "edge", descriptors: [address(1), descriptor("path=/"), login] });
    expect(codes(await ask())).toBe("OK: OK OK OK");
    expect(codes(await ask())).toBe("OK: OK OK OK");
    for (let i = 0; i < 5; i++) {
      const over = await ask();
      expect(codes(over)).toBe("OVER_LIMIT: OK OK OVER_LIMIT");
      expect(over.statuses.map(({ limit, remaining }) => [limit?.name, remaining])).toEqual([
        ["per-address", 1],
        [undefined, 0],
        ["login", 0],
      ]);
      expect(JSON.parse(over.body)).toMatchObject({ "violated-policies": ["login"] });
    }
    expect(codes(await envoy.ask({ domain: "edge", descriptors: [address(1)] }))).toBe("OK: OK");
    expect(codes(await envoy.ask({ domain: "edge", descriptors: [address(1)] }))).toBe("OVER_LIMIT: OVER_LIMIT");
  });

  it("that are the same count together", async () => {
    const envoy = (await start(rules)).connect();
    expect(codes(await envoy.ask({ domain: "edge", descriptors: [login, login, login] }))).toBe(
      "OVER_LIMIT: OVER_LIMIT OVER_LIMIT OVER_LIMIT",
    );
    const two = await envoy.ask({ domain: "edge", descriptors: [login, login] });
    expect(codes(two)).toBe("OK: OK OK");
    expect(two.statuses.map(({ remaining }) => remaining)).toEqual([0, 0]);
  });

  it("under one rule show its most restrictive count once", async () => {
    const envoy = (await start(perAddress)).connect();
    await envoy.ask({ domain: "edge", descriptors: [address(1)] });
    const answer = await envoy.ask({ domain: "edge", descriptors: [address(2), address(1)] });
    expect(answer.headers["ratelimit"]).toMatch(/^"per-address";r=1;t=\d+$/);
    expect(answer.headers["ratelimit-policy"]).toBe('"per-address";q=3;w=31536000');
    expect(answer.statuses.map(({ remaining }) => remaining)).toEqual([2, 1]);
  });

  it("with hits of their own are charged as many, and one that only looks rejects all", async () => {
    const envoy = (await start(rules)).connect();
    const ask = (hits: number, look: number) =>
      envoy.ask({
        domain: "edge",
        descriptors: [
          { ...address(1), hits_addend: { value: hits } },
          { ...login, hits_addend: { value: look } },
        ],
      });
    expect((await ask(1, 2)).statuses.map(({ remaining }) => remaining)).toEqual([2, 0]);
    const over = await ask(1, 0);
    expect(codes(over)).toBe("OVER_LIMIT: OK OVER_LIMIT");
    expect(over.statuses[0]?.remaining).toBe(2);
  });
});

describe("rules", () => {
  it("for HTTP requests count no descriptors", async () => {
    const rules = `\n  - { name: http, key: global, limit: 1, window: 1m }\n  - { name: path, match: { path: / }, key: global, limit: 1, window: 1m }`;
    const envoy = (await start(rules)).connect();
    for (let i = 0; i < 3; i++) expect((await envoy.ask({ domain: "edge", descriptors: [address(1)] })).headers).toEqual({});
  });

  it("in shadow mode count and never limit, and show no numbers", async () => {
    const { connect, running } = await start(perAddress.replace("limit: 3,", "limit: 1,").replace("key:", "mode: shadow, key:"));
    expect(running.addresses).toHaveProperty("rls");
    const envoy = connect();
    for (let i = 0; i < 3; i++) {
      const answer = await envoy.ask({ domain: "edge", descriptors: [address(1)] });
      expect(answer).toMatchObject({ code: "OK", headers: {}, body: "" });
      expect(answer.statuses[0]).toMatchObject({ code: "OK", limit: undefined });
    }
  });

  it("by ip count by the entry remote_address, an IPv6 network as one client", async () => {
    const envoy = (await start(perAddress.replace('"descriptor:remote_address"', "ip").replace("limit: 3,", "limit: 1,"))).connect();
    const ask = (ip: string) => envoy.ask({ domain: "edge", descriptors: [descriptor("path=/", `remote_address=${ip}`)] });
    expect(codes(await ask("2001:db8::1"))).toBe("OK: OK");
    expect(codes(await ask("2001:DB8:0::2"))).toBe("OVER_LIMIT: OVER_LIMIT");
    expect(codes(await ask("203.0.113.9"))).toBe("OK: OK");
    expect(codes(await ask("::ffff:203.0.113.9"))).toBe("OVER_LIMIT: OVER_LIMIT");
    await expect(envoy.ask({ domain: "edge", descriptors: [descriptor("path=/")] })).rejects.toMatchObject({
      code: 13,
      details: "The call could not be decided: FLOODGATE_NO_CLIENT_IP.",
    });
  });

  it("exempt addresses, and ban keys", async () => {
    const rules = perAddress
      .replace("limit: 3,", "limit: 1,")
      .replace("key:", "exempt: { ips: [10.0.0.0/8] }, ban: { after: 2, within: 1h, for: 1d }, key:");
    const envoy = (await start(rules)).connect();
    const ask = (ip: string) => envoy.ask({ domain: "edge", descriptors: [descriptor(`remote_address=${ip}`)] });
    for (let i = 0; i < 5; i++) expect((await ask("10.1.2.3")).code).toBe("OK");
    const waits: number[] = [];
    for (let i = 0; i < 3; i++) waits.push(Number((await ask("203.0.113.1")).headers["retry-after"] ?? 0));
    expect(waits[0]).toBe(0);
    expect(waits[2]).toBeGreaterThanOrEqual(86_399);
  });

  it("reject a descriptor without a key if they say so", async () => {
    const rules = `\n  - { name: users, match: { domain: edge }, key: user, onMissingKey: reject, limit: 1, ${year} }`;
    const envoy = (await start(rules, { keys: { user: "header:x-user" } })).connect();
    const answer = await envoy.ask({ domain: "edge", descriptors: [address(1)] });
    expect(codes(answer)).toBe("OVER_LIMIT: OVER_LIMIT");
    expect(JSON.parse(answer.body)).toMatchObject({ "violated-policies": ["users"] });
  });

  it("of a limit of 0 reject everything", async () => {
    const rules = `${perAddress}\n  - { name: off, match: { descriptor: { path: /off } }, key: global, limit: 0, window: 1m }`;
    const envoy = (await start(rules)).connect();
    expect(codes(await envoy.ask({ domain: "edge", descriptors: [address(1), descriptor("path=/off")] }))).toBe(
      "OVER_LIMIT: OK OVER_LIMIT",
    );
    expect((await envoy.ask({ domain: "edge", descriptors: [address(1)] })).statuses[0]?.remaining).toBe(2);
  });

  it("change between two calls, and keep their counts", async () => {
    const { connect, write } = await start(perAddress);
    const envoy = connect();
    const look = async () => (await envoy.ask({ domain: "edge", descriptors: [{ ...address(1), hits_addend: { value: 0 } }] })).statuses[0];
    await envoy.ask({ domain: "edge", descriptors: [address(1)], hits_addend: 3 });
    expect((await look())?.code).toBe("OVER_LIMIT");
    write(perAddress.replace("limit: 3,", "limit: 5,"));
    await vi.waitFor(async () => expect(await look()).toMatchObject({ code: "OK", remaining: 2 }), { timeout: 10_000, interval: 50 });
    write(perAddress.replace("domain: edge", "domain: mesh"));
    await vi.waitFor(async () => expect((await look())?.limit).toBeUndefined(), { timeout: 10_000, interval: 50 });
  });

  it("with `headers: false` count, and neither headers nor numbers show them", async () => {
    const budget = (limit: number): string =>
      `\n  - { name: budget, match: { domain: edge }, key: global, policy: { algorithm: fixed-window, limit: ${limit}, ${year} }, headers: false }`;
    const beside = (await start(`${perAddress}${budget(2)}`)).connect();
    const answers = [];
    for (let i = 0; i < 3; i++) answers.push(await beside.ask({ domain: "edge", descriptors: [address(i)] }));
    expect(answers.map(codes)).toEqual(["OK: OK", "OK: OK", "OVER_LIMIT: OVER_LIMIT"]);
    for (const { headers, statuses } of answers) {
      expect(headers["ratelimit-policy"]).toBe('"per-address";q=3;w=31536000');
      expect(statuses[0]?.limit?.name).toBe("per-address");
    }
    const alone = (await start(budget(1))).connect();
    expect(await alone.ask({ domain: "edge", descriptors: [address(1)] })).toMatchObject({ headers: {}, statuses: [{ limit: undefined }] });
    const over = await alone.ask({ domain: "edge", descriptors: [address(1)] });
    expect(codes(over)).toBe("OVER_LIMIT: OVER_LIMIT");
    expect(Object.keys(over.headers)).not.toEqual(expect.arrayContaining(["ratelimit"]));
    expect(over.statuses[0]?.limit).toBeUndefined();
  });

  it("that hold requests are refused", async () => {
    const queue = `\n  - { name: queue, match: { domain: edge }, policy: { algorithm: leaky-bucket, capacity: 10, leak: 5, every: 1s } }`;
    await expect(start(queue)).rejects.toThrow(/limits\.yaml:3:53: rules\[0\]: `policy` is a leaky-bucket, which holds requests/);
  });
});

it("200 calls at once from several channels are exact", async () => {
  const rules = `${perAddress.replace("limit: 3,", "limit: 70,")}
  - { name: all, match: { descriptor: { path: true } }, key: global, policy: { algorithm: sliding-window-log, limit: 100, ${year} } }`;
  const { connect } = await start(rules);
  const channels = Array.from({ length: 4 }, connect);
  const descriptors = (i: number) => [address(i % 2), descriptor("path=/")];
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, i) =>
      (channels[i % 4] as (typeof channels)[0]).ask({ domain: "edge", descriptors: descriptors(i), hits_addend: 2 }),
    ),
  );
  // 50 calls of 2 units fill "all"; each address has room for 35.
  expect(answers.filter(({ code }) => code === "OK")).toHaveLength(50);
  const rest = await Promise.all(
    [0, 1].map((i) => connect().ask({ domain: "edge", descriptors: [{ ...address(i), hits_addend: { value: 0 } }] })),
  );
  expect(rest.map(({ statuses }) => statuses[0]?.remaining).reduce((sum = 0, left = 0) => sum + left, 0)).toBe(140 - 100);
});
