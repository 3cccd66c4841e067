import { fixedWindow } from "@floodgate/core";
import { createLimit } from "@floodgate/core/store";
import { expect, it } from "vitest";
import { LeaseTable } from "../src/lease/lease-table.js";

const known = createLimit("api", fixedWindow({ limit: 10, window: "1m" }));

it("keys that are counted are forgotten from the oldest on once there are 10,000 others, but no key with a lease is", () => {
  const table = new LeaseTable(known, 1000);
  const [counted, leased] = ["counted", "leased"].map((key) => table.of(key, 0));
  table.held.set("leased", leased as never);
  const askFor = (count: number, from: number): void => {
    for (let i = 0; i < count; i++) table.of(`key ${from + i}`, 0);
  };
  askFor(9998, 0);
  expect(table.of("counted", 0)).toBe(counted);
  askFor(9999, 10_000);
  expect(table.of("counted", 0)).toBe(counted);
  askFor(20_000, 20_000);
  expect(table.of("counted", 0)).not.toBe(counted);
  expect(table.of("leased", 0)).toBe(leased);
});

it("keys are forgotten if they are not asked for during a life, also when the clock steps back", () => {
  for (const [first, second] of [
    [1000, 2000],
    [-1, -2],
  ] as const) {
    const table = new LeaseTable(known, 1000);
    const counted = table.of("key", 0);
    table.of("other", first);
    table.of("other", second);
    expect(table.of("key", second)).not.toBe(counted);
  }
});
