import { expect, it } from "vitest";
import { leftBehind, soak } from "../src/soak/soak.js";

/** About 170,000 decisions. `npm run test:long` soaks for minutes. */
const rounds = 12;

it("mixed traffic leaves nothing behind: no heap, no listener, no timer, no key, no request", { timeout: 240_000 }, async () => {
  expect(leftBehind(await soak(({ length }) => length >= rounds), 2e6)).toEqual([]);
});
