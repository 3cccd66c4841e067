import { measureServers, serverOf, serverTable } from "./lib/servers.mjs";

/** By the name of the file that has their listeners. */
export const frameworks = {
  express: { label: "Express 5", peer: "express-rate-limit" },
  koa: { label: "Koa 3", peer: "koa-ratelimit" },
  fastify: { label: "Fastify 5", peer: "@fastify/rate-limit" },
  nestjs: { label: "NestJS 12 on Express", peer: "@nestjs/throttler" },
  hono: { label: "Hono 4", peer: "hono-rate-limiter" },
  node: { label: "node:http" },
  fetch: { label: "Request and Response on srvx" },
};

const sliceSeconds = 0.25;

export async function http({ rounds = 5, seconds = 2, connections, framework }) {
  const tables = [];
  for (const name of framework ?? Object.keys(frameworks)) {
    const { label, peer } = frameworks[name];
    const labels = {
      nothing: "nothing in front of the route",
      noop: "no-op that sets two headers",
      allowed: "floodgate, allowed",
      denied: "floodgate, denied",
      ...(peer && { "peer allowed": `${peer}, allowed` }),
    };
    const kinds = Object.keys(labels).map((kind) => {
      const load = { path: "/", connections, status: kind === "denied" ? 429 : 200 };
      return [kind, { start: () => serverOf("framework", name, kind), load }];
    });
    const results = await measureServers(`http: ${label}`, Object.fromEntries(kinds), { rounds, seconds, sliceSeconds });
    const heading = `${label}, ${connections} connections on 127.0.0.1, ${rounds} rounds of ${seconds} s in slices of ${sliceSeconds} s`;
    tables.push(serverTable(heading, labels, results, { nothing: "to nothing", noop: "to the no-op" }));
  }
  return tables.join("\n");
}
