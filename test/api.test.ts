import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { publicApi } from "./public-api.js";

// A change of what a package exports, or of its types, shows as a change of `test/api/<package>.txt`.

const packages = join(import.meta.dirname, "..", "packages");
const snapshots = join(import.meta.dirname, "api");

describe("the public API is the one in test/api; if a change is meant, write it there with `npm run api`", () => {
  it.each(readdirSync(packages))("of packages/%s", async (name) => {
    await expect(publicApi(join(packages, name))).toMatchFileSnapshot(join(snapshots, `${name}.txt`));
  });

  it("holds no package that is gone", () => {
    // A new package gets its snapshot when these tests end.
    expect(readdirSync(packages).map((name) => `${name}.txt`)).toEqual(expect.arrayContaining(readdirSync(snapshots)));
  });
});
