import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, test } from "vitest";
import { loadedAlgorithms } from "../../src/algorithms/algorithm.js";
import { algorithms, allAlgorithms } from "../../src/algorithms/all.js";
import { descriptions, type OptionDescription } from "../../src/algorithms/descriptions.js";
import * as index from "../../src/index.js";

const folder = join(__dirname, "..", "..", "src", "algorithms");
const source = (file: string): string => readFileSync(join(folder, file), "utf8");
const names = Object.keys(algorithms);
const factoryOf = (name: string): string => name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());

test("every file that defines an algorithm is in the registry, under its own name", () => {
  const defining = readdirSync(folder).filter((file) => /: AlgorithmDefinition</.test(source(file)) && file !== "registry.ts");
  expect(defining.map((file) => file.replace(/\.ts$/, "")).sort()).toEqual([...names].sort());
  for (const name of names) expect(source(`${name}.ts`)).toContain(`algorithm: "${name}"`);
  expect([...loadedAlgorithms]).toEqual(expect.arrayContaining(Object.entries(algorithms)));
});

it.each(names)("%s is exported by its factory", (name) => {
  expect(index).toHaveProperty(factoryOf(name), algorithms[name as keyof typeof algorithms].make);
});

it.each(names)("%s is in the README, so that users find it", (name) => {
  expect(readFileSync(join(__dirname, "..", "..", "..", "..", "README.md"), "utf8")).toContain(`\`${factoryOf(name)}`);
});

it.each(Object.entries(descriptions))("%s describes the numbers that a plan may override as numbers and durations", (name, { options }) => {
  const numbers = Object.entries<OptionDescription>(options).filter(([, { type }]) => type === "whole number" || type === "duration");
  expect(algorithms[name as keyof typeof algorithms].numbers).toEqual(numbers.map(([option]) => option));
});

test("each way to decide has its own name, parameters of its policies, and cells", () => {
  const ways = allAlgorithms();
  expect(new Set(ways.map(({ name }) => name)).size).toBe(ways.length);
  for (const { cells } of ways) expect(new Set(cells).size).toBe(cells.length);
});
