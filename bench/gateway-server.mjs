import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gateway, serve as serveDecisions } from "@floodgate/gateway";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { createProxyServer } from "httpxy";
import { serve } from "./lib/child.mjs";

/** One server of the benchmark `gateway`, in a process of its own. */
const [kind, upstream] = process.argv.slice(2);

const folder = mkdtempSync(join(tmpdir(), "floodgate-bench-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const rules = join(folder, "limits.yaml");
const policy = "policy: { algorithm: gcra, limit: 1000000000, window: 1s }";
writeFileSync(
  rules,
  `rules:
  - { name: per-ip, key: ip, ${policy} }
  - { name: per-address, match: { domain: edge }, key: "descriptor:remote_address", ${policy} }
`,
);

const quiet = { rules, admin: false, logLevel: "silent" };
const portOf = (address) => Number(address.slice(address.lastIndexOf(":") + 1));

async function listen(server) {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server.address().port;
}

const kinds = {
  /** What the proxies pass requests on to. */
  upstream: () => listen(createServer((_, response) => response.writeHead(200, { "content-length": 2 }).end("ok"))),

  /** The proxy library alone, with kept connections as ours has. */
  httpxy: async () => {
    const { Agent } = await import("node:http");
    const proxy = createProxyServer({ target: upstream, agent: new Agent({ keepAlive: true }), xfwd: true });
    return listen(createServer((request, response) => proxy.web(request, response)));
  },

  gateway: async () => portOf((await gateway({ ...quiet, listen: "127.0.0.1:0", upstream })).addresses.listen),

  /** An HTTP server that decides nothing, with as many headers. */
  "no-op http": () =>
    listen(
      createServer((_, response) =>
        response.writeHead(204, { "RateLimit-Policy": '"per-ip";q=1000000000;w=1', RateLimit: '"per-ip";r=999999999;t=1' }).end(),
      ),
    ),

  /** And one that answers a status only. */
  "bare http": () => listen(createServer((_, response) => response.writeHead(204).end())),

  ask: async () => portOf((await serveDecisions({ ...quiet, listen: "127.0.0.1:0" })).addresses.listen),

  /** A gRPC server that decides nothing, and answers as many bytes. */
  "no-op grpc": async () => {
    const answer = Buffer.concat([Buffer.from([0x08, 1]), Buffer.alloc(150)]);
    const same = (bytes) => bytes;
    const server = new Server();
    const method = {
      requestStream: false,
      responseStream: false,
      requestDeserialize: same,
      responseSerialize: same,
      requestSerialize: same,
      responseDeserialize: same,
    };
    const path = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
    server.addService({ ShouldRateLimit: { path, ...method } }, { ShouldRateLimit: (_, done) => done(null, answer) });
    return new Promise((resolve, reject) => {
      server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) =>
        error === null ? resolve(port) : reject(error),
      );
    });
  },

  rls: async () => portOf((await serveDecisions({ ...quiet, listen: "127.0.0.1:0", rls: "127.0.0.1:0" })).addresses.rls),
};

const port = await kinds[kind]();

serve((question) => {
  if (question === "port") return port;
  const { user, system } = process.cpuUsage();
  return user + system;
});
