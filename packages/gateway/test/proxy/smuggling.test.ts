import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type FloodgateEvent, observe } from "@floodgate/core";
import { startNginx, type WebServer } from "@floodgate/test-servers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type SmugglingCase, smugglingCases } from "./smuggling-cases.js";
import { ask, openGateway, rawConnection, type TestGateway } from "./support.js";

/** An app that remembers the requests that it sees: "METHOD target body". */
const seen: string[] = [];
const app = createServer(async (request, response) => {
  const chunks: Buffer[] | undefined = await request.toArray().catch(() => undefined);
  // The gateway had to give up a request in the middle of its body.
  if (chunks === undefined) return;
  const body = Buffer.concat(chunks).toString("latin1");
  seen.push(`${request.method} ${request.url} ${body}`);
  response.end("ok");
});
let nginx: WebServer;

/** Requests that the gateway counted. */
let counted = 0;
let stop: () => void;

beforeAll(async () => {
  await new Promise<void>((done) => app.listen(0, "127.0.0.1", done));
  const appPort = (app.address() as AddressInfo).port;
  nginx = await startNginx({
    config: ({ port, dir }) => `
      log_format seen "$request_method $request_uri $status";
      large_client_header_buffers 8 32k;
      server {
        listen 127.0.0.1:${port};
        access_log ${dir}/seen.log seen;
        underscores_in_headers on;
        merge_slashes off;
        location / { proxy_pass http://127.0.0.1:${appPort}; proxy_http_version 1.1; }
      }`,
  });
  stop = observe((event: FloodgateEvent) => {
    if (event.type === "allowed") counted++;
  });
});

afterAll(async () => {
  stop();
  app.closeAllConnections();
  app.close();
  await nginx.stop();
});

/** Sends a case on a connection of its own, and returns the statuses of all answers. */
async function send(gateway: TestGateway, { bytes, statuses }: SmugglingCase): Promise<number[]> {
  const connection = await rawConnection(gateway.port, bytes);
  const answers = () => [...connection.text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  // A request that is refused ends its connection. Of the others, the last bytes must have been parsed.
  if (statuses.at(-1) === 200) {
    while (answers().length < statuses.length) await connection.until(new RegExp(`(HTTP/1\\.1 [\\s\\S]*){${answers().length + 1}}`));
    await connection.until(/ok(?:\r\n0\r\n\r\n)?$/);
    connection.socket.destroy();
  }
  await connection.closed();
  return answers();
}

describe.each(["node", "nginx"] as const)("smuggling in front of %s", (kind) => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await openGateway(kind === "node" ? (app.address() as AddressInfo).port : nginx.port);
  });

  afterAll(() => gateway.close());

  it.each(smugglingCases.map((one) => [one.name, one] as const))("%s", async (_name, one) => {
    const before = { counted, seen: seen.length };
    const nginxBefore = kind === "nginx" ? (await nginxSeen()).length : 0;

    expect(await send(gateway, one)).toEqual(one.statuses);
    // What was smuggled would be in front of the next request on the connection to the upstream.
    expect((await ask(`${gateway.url}/last`)).body).toBe("ok");

    const expected = [...one.seen, "GET /last "];
    expect(seen.slice(before.seen).sort()).toEqual([...expected].sort());
    expect(counted - before.counted).toBeGreaterThanOrEqual(expected.length);
    if (one.seen.length > 0) expect(counted - before.counted).toBe(expected.length);
    if (kind === "nginx") {
      // nginx writes its log after the answer.
      const logged = async () => (await nginxSeen()).slice(nginxBefore);
      await expect.poll(logged, { interval: 5 }).toContain("GET /last 200");
      // nginx counts a request that the gateway gave up in the middle of its body as a client that left.
      const lines = (await logged()).filter((line) => !/^POST \/p 4(?:00|99)$/.test(line)).map((line) => line.replace(/ 200$/, ""));
      expect(lines.sort()).toEqual(expected.map((request) => request.split(" ").slice(0, 2).join(" ")).sort());
    }
  });
});

async function nginxSeen(): Promise<string[]> {
  const text = await readFile(join(nginx.dir, "seen.log"), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}
