import { expect, it } from "vitest";
import { leftBehind, soak } from "../src/soak/soak.js";

/** About a quarter of a million decisions, as many as ten minutes bring at four hundred a second. */
const rounds = 18;

it("mixed traffic leaves nothing behind: no heap, no listener, no timer, no key, no request", { timeout: 240_000 }, async () => {
  expect(leftBehind(await soak(({ length }) => length >= rounds))).toEqual([]);
});
