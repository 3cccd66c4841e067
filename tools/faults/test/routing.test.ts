import { expect, it } from "vitest";
import { tryTargets } from "../src/routing/differential.js";

const targets = 10_000;

it(`each of ${targets} random targets that reaches a handler is counted under its rule`, { timeout: 240_000 }, async () => {
  const tallies = Object.values(await tryTargets(targets, Date.now() % 2 ** 32));
  expect(tallies.length).toBe(15);
  for (const { reached } of tallies) expect(reached).toBeGreaterThan(0);
});
