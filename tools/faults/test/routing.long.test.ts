import { expect, it } from "vitest";
import { tryTargets } from "./routing/differential.js";

const targets = 500_000;
/** `ROUTING_SEED` repeats a run. */
const seed = Number(process.env["ROUTING_SEED"] ?? Date.now() % 2 ** 32);

it(`each of ${targets} random targets that reaches a handler is counted under its rule`, { timeout: 900_000 }, async () => {
  const tallies = await tryTargets(targets, seed);
  console.table(tallies);
  expect(Object.keys(tallies).length).toBe(16);
  for (const { reached } of Object.values(tallies)) expect(reached).toBeGreaterThan(0);
});
