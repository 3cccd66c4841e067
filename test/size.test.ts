import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { expect, it } from "vitest";

// What an app carries if it bundles a line of ours: minified, gzipped, in thousands of bytes. Messages and checks are never cut for size.
// The budgets are a little above what it is now, so that growth is noticed. The goals are 34 for an adapter and 60 for fileRules.

const packages = join(import.meta.dirname, "../packages");

/** Which package an app imports from, what it uses of it, and the most that this may weigh. */
const budgets: readonly (readonly [folder: string, used: string, kilobytes: number])[] = [
  ["express", "rateLimit", 61.7],
  ["fastify", "rateLimit", 61.8],
  ["koa", "rateLimit", 61.8],
  ["hono", "rateLimit", 61.3],
  ["node", "rateLimit", 60.9],
  ["fetch", "rateLimit", 61.3],
  ["store-redis", "redisStore", 45.5],
  ["rules", "fileRules", 85.3],
  ["core", "createLimiter", 31.8],
  ["core", "fixedWindow", 4.1],
];

it.each(budgets)("an app that bundles @floodgate/%s for its %s carries at most %s kB", async (folder, used, kilobytes) => {
  expect(await sizeOf(folder, `import { ${used} } from "@floodgate/${folder}";\nconsole.log(${used});`)).toBeLessThan(kilobytes);
});

it("an app that uses require carries one copy of core, too", async () => {
  const code = `const { rateLimit } = require("@floodgate/express");\nimport { FloodgateError } from "@floodgate/core";\nconsole.log(rateLimit, FloodgateError);`;
  const bundle = await bundleOf("express", code);
  expect(bundle.split("class FloodgateError ").length - 1 + bundle.split("FloodgateError = class").length - 1).toBe(1);
});

/**
 * The most lines of an adapter's source, without comments. The goal is 150. Two have more, for reasons in docs/writing-an-adapter.md: they get
 * no line more.
 */
const mostLines = { node: 150, hono: 150, express: 150, fetch: 150, fastify: 150, nestjs: 200, koa: 218 };

it.each(Object.entries(mostLines))("@floodgate/%s has at most %s lines of source", async (folder, most) => {
  const { sourceLines } = await import(pathToFileURL(join(packages, "../bench/lib/lines.mjs")).href);
  expect(sourceLines(join(packages, folder))).toBeLessThanOrEqual(most);
});

async function sizeOf(folder: string, code: string): Promise<number> {
  return gzipSync(await bundleOf(folder, code, true), { level: 9 }).length / 1000;
}

/** The built packages, bundled as an app's bundler does. */
async function bundleOf(folder: string, code: string, minify = false): Promise<string> {
  const { outputFiles } = await build({
    // A package finds itself by its name.
    stdin: { contents: code, resolveDir: join(packages, folder) },
    bundle: true,
    format: "esm",
    minify,
    platform: "node",
    write: false,
    logLevel: "silent",
  });
  return (outputFiles[0] as { text: string }).text;
}
