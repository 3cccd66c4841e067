// nginx asks, Caddy asks, and Floodgate's own proxy proxies: three ways to one app, one limit in one Redis. The counts of all three add up.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { gateway, serve } from "@floodgate/gateway";
// This demo starts servers of all kinds, so it runs in Floodgate's repository only. The other files of this folder are for you to copy.
import { startCaddy, startNginx, startRedis } from "../../tools/test-servers/dist/index.js";

const limit = 30;
const requestsEach = 20;
const file = (name) => fileURLToPath(new URL(name, import.meta.url));

if (process.argv.includes("--help")) {
  console.log("Usage: node demo.mjs\n\nNeeds redis-server, nginx and caddy. As root on Debian, it installs those that are missing.");
  process.exit(0);
}

const stops = [];
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => stop().then(() => process.exit(1)));
try {
  await demo();
} catch (error) {
  // It says what to install, if something is missing.
  console.error(error.message);
  process.exitCode = 1;
}
await stop();

async function demo() {
  const redis = await started(startRedis());
  const received = new Map();
  const app = await startApp(received);

  // Three services with rules and counts in common, as they would run on three machines.
  const settings = {
    rules: file("demo-limits.yaml"),
    redis: `redis://${redis.host}:${redis.port}`,
    // A busy machine must not let requests pass uncounted.
    timeoutMs: 10_000,
    admin: false,
    logLevel: "warn",
    drainMs: 0,
  };
  const asked = [];
  for (let i = 0; i < 2; i++) asked.push((await started(serve({ ...settings, listen: "127.0.0.1:0" }))).addresses.listen);
  const proxy = (await started(gateway({ ...settings, listen: "127.0.0.1:0", upstream: `http://${app}` }))).addresses.listen;

  const nginx = await started(startNginx({ config: ({ port }) => page("nginx", "listen 80", `listen 127.0.0.1:${port}`, asked[0], app) }));
  const caddy = await started(startCaddy({ config: ({ port }) => page("caddy", ":80 {", `http://127.0.0.1:${port} {`, asked[1], app) }));
  const ways = [
    { name: "nginx", url: nginx.url, how: `asks the decision server on ${asked[0]}` },
    { name: "Caddy", url: caddy.url, how: `asks the decision server on ${asked[1]}` },
    { name: "the proxy", url: `http://${proxy}`, how: "is floodgate gateway, and decides by itself" },
  ];

  console.log(`One app on ${app}, one Redis on ${redis.host}:${redis.port}, three ways to the app:\n`);
  for (const { name, url, how } of ways) console.log(`  ${name.padEnd(9)}  ${url.padEnd(22)}  ${how}`);
  console.log(`
The rule, in examples/gateway/demo-limits.yaml: ${limit} requests an hour for each API key.
Sending ${requestsEach} requests with the key "demo" each way, all ${requestsEach * ways.length} at the same time:
`);

  const sent = ways.flatMap((way) => Array.from({ length: requestsEach }, () => send(way)));
  const responses = await Promise.all(sent);
  let passed = 0;
  for (const { name } of ways) {
    const own = responses.filter(({ way }) => way === name);
    const ok = own.filter(({ status }) => status === 200).length;
    const limited = own.filter(({ status }) => status === 429).length;
    passed += ok;
    console.log(
      `  ${name.padEnd(9)}  ${count(ok)} × 200   ${count(limited)} × 429   the app received ${count(received.get(name) ?? 0)} from it`,
    );
  }
  const all = [...received.values()].reduce((sum, own) => sum + own, 0);
  console.log(`  together   ${count(passed)} × 200   ${count(responses.length - passed)} × 429   the app received ${count(all)}\n`);

  for (const { way, headers, body } of ways
    .map(({ name }) => responses.find((one) => one.way === name && one.status === 429))
    .filter(Boolean)) {
    console.log(`A 429 from ${way}:`);
    for (const name of ["retry-after", "ratelimit", "ratelimit-policy", "content-type"]) console.log(`  ${name}: ${headers.get(name)}`);
    console.log(`  ${body}\n`);
  }
  if (passed !== limit || all !== limit)
    throw new Error(`${passed} requests passed and the app received ${all}, but the limit is ${limit}.`);
  console.log(`Exactly ${limit} passed, whichever way they took.`);
}

/** The config of a page of docs/gateways, with the addresses of this run. */
function page(name, listen, ownListen, ask, app) {
  const [, config] = /^```\w+\n(# \/etc\/[\s\S]*?)^```$/m.exec(readFileSync(file(`../../docs/gateways/${name}.md`), "utf8"));
  // A deadline that a busy machine keeps.
  const own = { [listen]: ownListen, "127.0.0.1:8081": ask, "127.0.0.1:3000": app, "250ms": "10s" };
  return Object.entries(own).reduce((text, [from, to]) => text.replaceAll(from, to), config);
}

async function send({ name, url }) {
  const response = await fetch(`${url}/api/things?way=${encodeURIComponent(name)}`, { headers: { "X-Api-Key": "demo" } });
  return { way: name, status: response.status, headers: response.headers, body: await response.text() };
}

/** An app without any limits. It counts the requests of each way. */
async function startApp(received) {
  const server = createServer((req, res) => {
    const way = new URL(req.url, "http://app").searchParams.get("way");
    received.set(way, (received.get(way) ?? 0) + 1);
    res.end("Here are your things.\n");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  stops.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return `127.0.0.1:${server.address().port}`;
}

/** Waits for a server, which has `stop`, or for a service, which has `close`. `stop` stops it. */
async function started(starting) {
  const running = await starting;
  stops.push(() => running.stop?.() ?? running.close());
  return running;
}

/** Stops everything, the last one first. */
async function stop() {
  for (let next = stops.pop(); next !== undefined; next = stops.pop()) await next();
}

function count(number) {
  return String(number).padStart(2);
}
