import { expect, it } from "vitest";
import { heapGrowth, soak } from "../src/soak/soak.js";

/** About a quarter of a million decisions, as many as ten minutes bring at four hundred a second. */
const rounds = 18;

it("mixed traffic leaves nothing behind: no heap, no listener, no timer, no key, no request", { timeout: 240_000 }, async () => {
  const { samples, keysLeft } = await soak(({ length }) => length >= rounds);
  const [first, last] = [samples[0], samples.at(-1)];
  expect(heapGrowth(samples)).toBeLessThan(2e6);
  expect(last?.listeners).toBe(first?.listeners);
  expect(last?.timers).toBe(0);
  expect(last?.lost).toBe(0);
  expect(keysLeft).toBe(0);
});
