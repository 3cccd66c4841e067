import { expect, it } from "vitest";
import { leftBehind, soak } from "../src/soak/soak.js";

/** About 130,000 decisions. `npm run test:long` runs for minutes. */
const rounds = 9;

it("mixed traffic leaks no memory, listeners, timers, keys or requests", { timeout: 240_000 }, async () => {
  expect(leftBehind(await soak(({ length }) => length >= rounds), 2e6)).toEqual([]);
});
