import { existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { beforeAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "./files.js";
import { entries, folders, manifests, pack, root, run, tarballsIn } from "./packed.js";

// What is published: the files of each package, and what others say of them.

const temp = temporaryFolder("tarballs");
const tarballs = tarballsIn(temp);
const names = Object.keys(tarballs);
const tarball = (name: string) => (tarballs[name] as string).replace("file:", "");

/** Files for other programs: editors, HAProxy, Apache, Grafana, Prometheus. And the licences of packages that are inlined. */
const papers: Readonly<Record<string, readonly string[]>> = {
  "@floodgate/rules": ["schema.json", "dist/LICENSE-zod"],
  "@floodgate/store-redis": ["dist/LICENSE-lru-cache"],
  "@floodgate/store-database": ["dist/LICENSE-lru-cache"],
  "@floodgate/gateway": ["gateways/apache.lua", "gateways/haproxy.lua"],
  "@floodgate/simulator": ["dist/report.html", "dist/LICENSE-tinyqueue"],
  "@floodgate/dashboard": ["dist/LICENSE-lru-cache", "dist/LICENSE-zod"],
  "@floodgate/metrics": ["grafana/floodgate.json", "prometheus/alerts.yaml"],
};

/** Bundles that no user imports: a worker thread. */
const programs: Readonly<Record<string, readonly string[]>> = {
  "@floodgate/rules": ["dist/parse-worker.js"],
};

beforeAll(async () => {
  for (const folder of folders) {
    expect(readdirSync(join(root, "packages", folder)), `packages/${folder} is not built: run npm run build`).toContain("dist");
  }
  await pack(temp);
}, 180_000);

describe("the tarballs", { timeout: 30_000 }, () => {
  it.each(names)("%s holds its sources, their types, what they are bundled into, and the papers", async (name) => {
    const files = (await run("tar", ["-tzf", tarball(name)], temp)).trim().split("\n");
    const held = files.map((file) => file.replace("package/", "")).sort();
    const sources = held.filter((file) => file.startsWith("src/"));
    const { bin = {}, exports } = manifests[names.indexOf(name)];
    const own = entries.filter((entry) => entry === name || entry.startsWith(`${name}/`));
    const starts = own.map((entry) => entry.slice(name.length + 1) || "index");
    expect(sources).toEqual(expect.arrayContaining(starts.map((start) => `src/${start}.ts`)));
    expect(sources.filter((file) => !/\.ts$/.test(file) || /\.(test|d)\.ts$/.test(file))).toEqual([]);
    const types = [
      ...sources.flatMap((source) => ["d.ts", "d.ts.map"].map((end) => source.replace(/^src/, "dist").replace(/ts$/, end))),
      ...starts.map((start) => `dist/${start}.d.mts`),
    ];
    const bundles = [
      ...starts.flatMap((start) => [`dist/${start}.js`, `dist/${start}.mjs`]),
      ...Object.values<string>(bin).map((file) => file.slice(2)),
      ...(programs[name] ?? []),
      ...(JSON.stringify(exports).includes('"module"')
        ? ["package.json", ...starts.map((start) => `${start}.js`)].map((file) => `dist/module/${file}`)
        : []),
      // One for each source that an entry point loads. A source of types alone has none.
      ...sources.map((source) => source.replace(/^src(.*)ts$/, "dist/module$1js")).filter((file) => held.includes(file)),
      // Packages and texts that are inlined.
      ...held.filter((file) => /^dist\/module\/(?:inlined|lua)\/.*\.js$/.test(file)),
      // What several entry points load.
      ...["dist/shared.js", "dist/rolldown-runtime.js"].filter((file) => held.includes(file)),
    ];
    // A bundle that only loads others has none.
    const maps = bundles.map((file) => `${file}.map`).filter((file) => held.includes(file));
    expect(maps).not.toEqual([]);
    // What is no source and is read as it is.
    const folder = folders[names.indexOf(name)] as string;
    const read = ["vectors", "lua", ...(name === "@floodgate/core" ? ["docs"] : [])].flatMap((kind) =>
      existsSync(join(root, "packages", folder, kind)) ? filesIn(folder, kind) : [],
    );
    const expected = [...sources, ...types, ...bundles, ...maps, ...read, ...(papers[name] ?? []), "LICENSE", "README.md", "package.json"];
    if (held.includes("CHANGELOG.md")) expected.push("CHANGELOG.md");
    expect(held, "the tarball has other files than its sources say").toEqual([...new Set(expected)].sort());
  });

  it.each(names)("%s says nothing of the condition that leads this repository to its sources", async (name) => {
    expect(await run("tar", ["-xOzf", tarball(name), "package/package.json"], temp)).not.toContain("@floodgate/source");
  });

  it.each(names)("%s has source maps that lead to its sources and do not repeat them", async (name) => {
    const unpacked = mkdtempSync(join(temp, "unpacked-"));
    await run("tar", ["-xzf", tarball(name), "-C", unpacked], temp);
    const files = readdirSync(unpacked, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith("js.map"));
    for (const file of files) {
      const map = JSON.parse(readFileSync(join(unpacked, file), "utf8"));
      expect(map.sourcesContent ?? []).toEqual([]);
      const own = map.sources.filter((source: string) => !source.includes("/node_modules/"));
      const missing = own.filter((source: string) => !existsSync(join(unpacked, file, "..", source)));
      expect(missing, file).toEqual([]);
    }
  });

  it.each(names)("%s satisfies publint", async (name) => {
    const { buffer } = new Uint8Array(readFileSync(tarball(name)));
    const { messages, pkg } = await publint({ pack: { tarball: buffer }, strict: true });
    expect(messages.map((message) => formatMessage(message, pkg))).toEqual([]);
  });

  it.each(names)("%s has the right types for every resolution", async (name) => {
    const analysis = await checkPackage(createPackageFromTarballData(new Uint8Array(readFileSync(tarball(name)))));
    expect(analysis).toMatchObject({ types: { kind: "included" }, problems: [] });
  });
});

function filesIn(folder: string, kind: string): string[] {
  const files = readdirSync(join(root, "packages", folder, kind), { recursive: true, withFileTypes: true });
  return files
    .filter((file) => file.isFile() && !file.name.endsWith(".tsbuildinfo"))
    .map((file) => relative(join(root, "packages", folder), join(file.parentPath, file.name)));
}
