import { once } from "node:events";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { descriptions, type OptionDescription } from "../packages/core/src/rules.js";

// What an app carries if it bundles a line of ours: minified, gzipped, in thousands of bytes. Messages and checks are never cut for size.
// The budgets are a little above what it is now, so that growth is noticed. The goals are 34 for an adapter and 60 for fileRules.
// The store of Redis has its Lua scripts in it: 15 of its kilobytes.

const packages = join(import.meta.dirname, "../packages");

/** Which package an app imports from, what it uses of it, and the most that this may weigh. */
const budgets: readonly (readonly [folder: string, used: string, kilobytes: number])[] = [
  ["express", "rateLimit", 54.7],
  ["fastify", "rateLimit", 54.8],
  ["koa", "rateLimit", 54.2],
  ["hono", "rateLimit", 53.7],
  ["node", "rateLimit", 53.8],
  ["fetch", "rateLimit", 53.6],
  ["store-redis", "redisStore", 54.0],
  ["rules", "fileRules", 84.5],
  ["core", "createLimiter", 22.0],
  ["core", "fixedWindow", 5.6],
];

it.each(budgets)("an app that bundles @floodgate/%s for its %s carries at most %s kB", async (folder, used, kilobytes) => {
  expect(await sizeOf(folder, `import { ${used} } from "@floodgate/${folder}";\nconsole.log(${used});`)).toBeLessThan(kilobytes);
});

it("an app that uses require carries one copy of core, too", async () => {
  const code = `const { rateLimit } = require("@floodgate/express");\nimport { FloodgateError } from "@floodgate/core";\nconsole.log(rateLimit, FloodgateError);`;
  const bundle = await bundleOf("express", code);
  expect(bundle.split("class FloodgateError ").length - 1 + bundle.split("FloodgateError = class").length - 1).toBe(1);
});

it("a bundle carries the algorithms that it imports, and says of another one what to import", async () => {
  const code = `import { rateLimit, tokenBucket } from "@floodgate/express";
export const imported = rateLimit({ policy: { algorithm: "token-bucket", capacity: 2, refill: 1, every: "1s" } }).limiter.policy;
export const same = tokenBucket({ capacity: 2, refill: 1, every: "1s" });
export const other = () => rateLimit({ policy: { algorithm: "leaky-bucket", capacity: 2, leak: 1, every: "1s" } });`;
  const { imported, same, other } = await loaded("express", code);
  expect(imported).toEqual(same);
  expect(other).toThrow(
    'rateLimit: the algorithm "leaky-bucket" is not in this bundle, because nothing imports leakyBucket. Write policy: leakyBucket({',
  );
});

it("a bundle that reads rules from texts carries all algorithms", async () => {
  const code = `import { createLimiter } from "@floodgate/core";
import { parseRules } from "@floodgate/rules";
import { memoryStore } from "@floodgate/store-memory";
export const policiesOf = (text) =>
  parseRules(text).rules.map(({ name, policy }) => createLimiter({ name, policy, store: memoryStore() }).policy.algorithm);`;
  const { policiesOf } = await loaded("gateway", code);
  const names = Object.keys(descriptions);
  const rules = Object.entries(descriptions).map(([algorithm, { options }]) => {
    const needed = Object.entries<OptionDescription>(options).filter(([, { optional }]) => optional !== true);
    return { name: algorithm, policy: { algorithm, ...Object.fromEntries(needed.map(([name, { example }]) => [name, parse(example)])) } };
  });
  expect(policiesOf(JSON.stringify({ rules }))).toEqual(names);
});

// Minifiers drop the names of functions, such as that of the getter `req.ip`.
it.each(["express", "express4"])("a minified bundle of %s warns of a proxy that the app does not trust", async (express) => {
  const code = `import express from "${express}";
import { rateLimit } from "@floodgate/express";
export const appOf = (options) => express().use(rateLimit(options), (request, response) => response.end());`;
  const { appOf } = await loaded("express", code, true);
  const codes: (string | undefined)[] = [];
  const server = appOf({ limit: 1, window: "1d", onEvent: (event: { code?: string }) => codes.push(event.code) }).listen(0, "127.0.0.1");
  await once(server, "listening");
  await fetch(`http://127.0.0.1:${server.address().port}`, { headers: { "x-forwarded-for": "203.0.113.9" } });
  server.close();
  expect(codes).toContain("FLOODGATE_MISSING_PROXY_SETTING");
});

/** What a bundle exports. */
// biome-ignore lint/suspicious/noExplicitAny: what the code exports
async function loaded(folder: string, code: string, minify = false): Promise<any> {
  const bundled = { exports: {} };
  new Function("module", "exports", "require", await bundleOf(folder, code, minify, "cjs"))(
    bundled,
    bundled.exports,
    createRequire(import.meta.url),
  );
  return bundled.exports;
}

/**
 * The most lines of an adapter's source, without comments. The goal is 150. NestJS has more, for reasons in docs/writing-an-adapter.md: it
 * gets no line more.
 */
const maxLines = { node: 150, hono: 150, express: 150, fetch: 150, fastify: 150, nestjs: 179, koa: 150 };

it.each(Object.entries(maxLines))("@floodgate/%s has at most %s lines of source", async (folder, most) => {
  const { sourceLines } = await import(pathToFileURL(join(packages, "../bench/lib/lines.mjs")).href);
  expect(sourceLines(join(packages, folder))).toBeLessThanOrEqual(most);
});

async function sizeOf(folder: string, code: string): Promise<number> {
  return gzipSync(await bundleOf(folder, code, true), { level: 9 }).length / 1000;
}

/** The built packages, bundled as an app's bundler does. */
async function bundleOf(folder: string, code: string, minify = false, format: "esm" | "cjs" = "esm"): Promise<string> {
  const { outputFiles } = await build({
    // A package finds itself by its name.
    stdin: { contents: code, resolveDir: join(packages, folder) },
    bundle: true,
    format,
    minify,
    platform: "node",
    write: false,
    logLevel: "silent",
  });
  return (outputFiles[0] as { text: string }).text;
}
