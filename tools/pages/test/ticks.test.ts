import { expect, it } from "vitest";
import { linearTicks, timeStep } from "../browser/ticks.js";

it.each([
  [0.1, 2, [0, 0.05, 0.1]],
  [1, 2, [0, 0.5, 1]],
  [13.5, 5, [0, 5, 10]],
  [1_234, 4, [0, 500, 1_000]],
])("marks an axis up to %d at round values, at most %d of them", (most, count, ticks) => {
  expect(linearTicks(most, count)).toEqual(ticks);
});

it("marks whole numbers where they are counted", () => {
  expect(linearTicks(1, 4, 1)).toEqual([0, 1]);
});

it("leaves each label of a time axis room, from a second to centuries", () => {
  for (const width of [1, 200, 1000]) {
    for (let spanMs = 1000; spanMs < 1e13; spanMs *= 3) {
      const stepMs = timeStep(spanMs, width);
      expect((stepMs / spanMs) * width).toBeGreaterThanOrEqual(64);
    }
  }
});
