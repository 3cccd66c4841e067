import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { ask, limitOf, startGateway, startUpstream } from "./support.js";

const rules = limitOf(1000, "cost: 10, settle: header:X-Cost,");

/** A gateway whose upstream answers the cost that a request asks for. `used` is what the limit has counted. */
async function costing(rules: string) {
  const upstream = await startUpstream((incoming, response) => {
    const cost = incoming.headers["x-wanted"];
    if (cost !== undefined) response.setHeader("X-Cost", cost === "twice" ? ["1", "2"] : cost);
    if (incoming.url === "/cut") response.write("begun", () => response.destroy());
    else response.end("ok");
  });
  const gateway = await startGateway(upstream.port, rules);
  const used = async (): Promise<number> => {
    const { headers } = await ask(gateway.url, { headers: { "X-Wanted": "0" } });
    return 1000 - 10 - Number(/r=(\d+)/.exec(headers["ratelimit"] as string)?.[1]);
  };
  return { gateway, used };
}

it("a request costs what the upstream's header says, more or less than was reserved, and the client sees the header", async () => {
  const { gateway, used } = await costing(rules);
  expect((await ask(gateway.url, { headers: { "X-Wanted": "250" } })).headers["x-cost"]).toBe("250");
  await expect.poll(used).toBe(250);
  await ask(gateway.url, { headers: { "X-Wanted": "3" } });
  await expect.poll(used).toBe(253);
});

it("held units become what the header says, and what was reserved without a header", async () => {
  const { gateway, used } = await costing(limitOf(1000, "cost: 10, settle: header:x-cost, hold: 60s,"));
  await ask(gateway.url, { headers: { "X-Wanted": "7" } });
  await expect.poll(used).toBe(7);
  await ask(gateway.url);
  await expect.poll(used).toBe(17);
});

it.each(["1.5", "-1", "1e3", "", "many", "9007199254740993", "twice"])(
  "the cost %j is an error in the log, and what was reserved stays",
  async (cost) => {
    const { gateway, used } = await costing(rules);
    await ask(gateway.url, { headers: { "X-Wanted": cost } });
    await expect.poll(() => gateway.lines.map(({ message }) => message)).toContain("A settlement failed.");
    expect(JSON.stringify(gateway.lines)).toContain("The header X-Cost of the upstream's response must be a whole number of at least 0");
    await expect.poll(used).toBe(10);
  },
);

it("a response that breaks costs what its head said, and an upstream that is gone what was reserved", async () => {
  const { gateway, used } = await costing(rules);
  await expect(ask(`${gateway.url}/cut`, { headers: { "X-Wanted": "99" } })).rejects.toThrow();
  await expect.poll(used).toBe(99);
  const other = await startUpstream();
  const alone = await startGateway(other.port, rules);
  other.close();
  other.closeAllConnections();
  expect((await ask(alone.url)).headers["ratelimit"]).toContain("r=990");
  expect((await ask(alone.url)).headers["ratelimit"]).toContain("r=980");
});

it("refunds by the status of the response", async () => {
  let status = 500;
  const upstream = await startUpstream((_request, response) => void response.writeHead(status).end());
  // A rules file may be shared with Envoy.
  const rules = limitOf(2).replace("]", ", { name: mesh, match: { domain: edge }, limit: 1, window: 1m }]");
  const { url } = await startGateway(upstream.port, rules, { refundStatus: "5xx,404" });
  const statuses: number[] = [];
  for (status of [500, 404, 503, 200, 500, 201, 200]) {
    statuses.push((await ask(url)).status);
    await turn();
  }
  expect(statuses).toEqual([500, 404, 503, 200, 500, 201, 429]);
});
