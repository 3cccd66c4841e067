import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cpuUs, serve } from "./lib/child.mjs";

/** One server, in a process of its own, which loads only what it needs. */
const [kind, ...args] = process.argv.slice(2);

const policy = "policy: { algorithm: gcra, limit: 1000000000, window: 1s }";
const rules = `rules:
  - { name: per-ip, key: ip, ${policy} }
  - { name: per-address, match: { domain: edge }, key: "descriptor:remote_address", ${policy} }
`;

async function listen(server) {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server.address().port;
}

/** The port of a service of ours. */
async function ours(command, part, settings) {
  const folder = mkdtempSync(join(tmpdir(), "floodgate-bench-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "limits.yaml"), rules);
  const services = await import("@floodgate/gateway");
  const quiet = { rules: join(folder, "limits.yaml"), admin: false, logLevel: "silent", listen: "127.0.0.1:0" };
  const { addresses } = await services[command]({ ...quiet, ...settings });
  return Number(addresses[part].split(":").at(-1));
}

const kinds = {
  /** An app with a limit, a no-op or another library in front of its route. */
  async framework(framework, limit) {
    const { listener } = await import(`./http/${framework}.mjs`);
    return listen(createServer(await listener(limit)));
  },

  /** What the proxies pass requests on to. */
  upstream: () => listen(createServer((_, response) => response.writeHead(200, { "content-length": 2 }).end("ok"))),

  /** The proxy library alone, with kept connections as ours has. */
  async httpxy(target) {
    const [{ Agent }, { createProxyServer }] = [await import("node:http"), await import("httpxy")];
    const proxy = createProxyServer({ target, agent: new Agent({ keepAlive: true }), xfwd: true });
    return listen(createServer((request, response) => proxy.web(request, response)));
  },

  gateway: (upstream) => ours("gateway", "listen", { upstream }),

  /** An HTTP server that decides nothing, with as many headers. */
  "no-op http": () =>
    listen(
      createServer((_, response) =>
        response.writeHead(204, { "RateLimit-Policy": '"per-ip";q=1000000000;w=1', RateLimit: '"per-ip";r=999999999;t=1' }).end(),
      ),
    ),

  /** And one that answers a status only. */
  "bare http": () => listen(createServer((_, response) => response.writeHead(204).end())),

  ask: () => ours("serve", "listen"),

  /** A gRPC server that decides nothing, and answers as many bytes. */
  async "no-op grpc"() {
    const { Server, ServerCredentials } = await import("@grpc/grpc-js");
    const answer = Buffer.concat([Buffer.from([0x08, 1]), Buffer.alloc(150)]);
    const same = (bytes) => bytes;
    const codec = { requestDeserialize: same, responseSerialize: same, requestSerialize: same, responseDeserialize: same };
    const path = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
    const method = { path, requestStream: false, responseStream: false, ...codec };
    const server = new Server();
    server.addService({ ShouldRateLimit: method }, { ShouldRateLimit: (_, done) => done(null, answer) });
    return new Promise((resolve, reject) => {
      server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => (error ? reject(error) : resolve(port)));
    });
  },

  rls: () => ours("serve", "rls", { rls: "127.0.0.1:0" }),
};

const port = await kinds[kind](...args);

serve((question) => (question === "port" ? port : cpuUs()));
