import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { inRounds } from "./lib/child.mjs";
import { sourceLines } from "./lib/lines.mjs";
import { median, table } from "./lib/report.mjs";

const packages = join(import.meta.dirname, "../packages");

/** What an app uses of each adapter. */
const adapters = {
  node: "rateLimit",
  hono: "rateLimit",
  express: "rateLimit",
  fetch: "rateLimit",
  fastify: "rateLimit",
  nestjs: "FloodgateGuard, FloodgateModule",
  koa: "rateLimit",
};

/** Lines of source, size in a bundle, dependencies, and the CPU time of the first import of each adapter. */
export async function adapterTable({ rounds = 15 }) {
  const names = Object.keys(adapters);
  const times = await inRounds("first load", names, rounds, loadMs);
  const rows = [];
  for (const name of names)
    rows.push([name, sourceLines(join(packages, name)), await kilobytes(name), needs(name), median(times[name]).toFixed(0)]);
  const columns = ["adapter", "lines of source", "kB in a bundle", "needs beside core and store-memory", "CPU ms of the first import"];
  return table(
    `Adapters: the bundle is minified and gzipped, with core and store-memory, without the framework; medians of ${rounds} imports in turn`,
    columns,
    rows,
  );
}

/** The CPU time of an import in a new process, which has loaded the framework. */
function loadMs(name) {
  const framework = name === "nestjs" ? 'await import("@nestjs/common"); await import("@nestjs/core");' : "";
  const code = `${framework} const before = process.cpuUsage(); await import("@floodgate/${name}"); const { user, system } = process.cpuUsage(before); console.log((user + system) / 1000);`;
  // A package finds itself by its name.
  return Number(execFileSync(process.execPath, ["--input-type=module", "-e", code], { cwd: join(packages, name), encoding: "utf8" }));
}

async function kilobytes(name) {
  const contents = `import { ${adapters[name]} } from "@floodgate/${name}";\nconsole.log(${adapters[name]});`;
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: join(packages, name) },
    ...{ bundle: true, minify: true, write: false, format: "esm", platform: "node", logLevel: "silent" },
    external: ["@nestjs/*", "reflect-metadata"],
  });
  return (gzipSync(outputFiles[0].text, { level: 9 }).length / 1000).toFixed(1);
}

function needs(name) {
  const manifest = JSON.parse(readFileSync(join(packages, name, "package.json"), "utf8"));
  const { dependencies, peerDependencies = {}, peerDependenciesMeta: meta = {} } = manifest;
  const common = ["@floodgate/core", "@floodgate/store-memory"];
  const all = Object.keys({ ...dependencies, ...peerDependencies }).filter((other) => meta[other]?.optional !== true);
  return all.filter((other) => !common.includes(other)).join(", ") || "nothing";
}
