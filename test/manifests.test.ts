import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { publishedPackages } from "../tools/bundle/src/packages.js";

// What npm shows and does with each package.

const packages = join(import.meta.dirname, "../packages");
const manifests = readdirSync(packages).map((folder) => JSON.parse(readFileSync(join(packages, folder, "package.json"), "utf8")));

describe.each(manifests.map((manifest) => [manifest.name, manifest]))("%s", (_, manifest) => {
  it("says what it is, and runs where all of them run", () => {
    // The parser of Node 20.19.1 takes requests that the gateway must refuse.
    const node = manifest.name === "@floodgate/gateway" ? ">=20.19.2" : ">=20.19";
    expect(manifest).toMatchObject({ license: "MIT", type: "commonjs", engines: { node } });
    expect(manifest.description).toMatch(/^[^.]+$/);
    expect(manifest.keywords).toEqual(expect.arrayContaining(["floodgate", "rate-limiting"]));
    expect(manifest.files).toEqual(expect.arrayContaining(["CHANGELOG.md", "dist", "!dist/.tsbuildinfo", "src"]));
  });

  it("is published for everybody, with provenance, from wherever the sources are", () => {
    expect(manifest.publishConfig).toMatchObject({ access: "public", provenance: true });
    expect(manifest).not.toHaveProperty("repository");
    expect(manifest.private).toBeUndefined();
  });

  it("lets bundlers drop what an app does not use: only a command does anything when it is loaded", () => {
    expect(manifest.sideEffects).toEqual(manifest.bin === undefined ? false : Object.values(manifest.bin));
  });
});

it("all packages have one version, and Changesets keep it one", () => {
  expect(new Set(manifests.map(({ version }) => version)).size).toBe(1);
  const { fixed } = JSON.parse(readFileSync(join(packages, "../.changeset/config.json"), "utf8"));
  expect(fixed).toEqual([manifests.map(({ name }) => name).sort()]);
});

it("no package installs a framework that it does not ask for", () => {
  const installed = manifests.flatMap(({ name, dependencies = {}, peerDependencies = {} }) =>
    Object.keys(dependencies).flatMap((dependency) => {
      const { peerDependencies: peers = {}, peerDependenciesMeta: meta = {} } = manifests.find(({ name }) => name === dependency) ?? {};
      // Package managers install what is not optional.
      const needed = Object.keys(peers).filter((peer) => !meta[peer]?.optional && !(peer in { ...dependencies, ...peerDependencies }));
      return needed.map((peer) => `${name}: ${peer}`);
    }),
  );
  expect(installed).toEqual([]);
});

it("docs/security.md says what each package installs and contains", () => {
  const page = readFileSync(join(packages, "../docs/security.md"), "utf8");
  const cells = page.split("\n").map((line) => line.split("|").map((cell): string[] => cell.match(/[^`\s,]+(?=`)/g) ?? []));
  const said = cells.flatMap(([, names, installs, contains]) => {
    const name = names?.[0];
    return name?.startsWith("@floodgate/") ? [{ name, installs, contains }] : [];
  });
  const bundles = publishedPackages();
  const real = manifests.map(({ name, dependencies = {} }) => ({
    name,
    installs: Object.keys(dependencies).filter((dependency) => !dependency.startsWith("@floodgate/")),
    contains: bundles.find(({ folder }) => name === `@floodgate/${folder}`)?.inlined ?? [],
  }));
  expect(said).toEqual(real.filter(({ installs, contains }) => installs.length + contains.length > 0));
});
