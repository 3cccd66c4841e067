import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type StoreGroup, storeConformance } from "../src/store.js";
import { simpleStore } from "./simple-store.js";

/** What a runner's report lists if `leaveOut` is given. */
function report(leaveOut: Readonly<Record<string, string>>): string[] {
  const lines: string[] = [];
  let group = "";
  const describe = (name: string, body: () => void): void => {
    group = name;
    body();
  };
  const test = Object.assign((name: string) => lines.push(`${group}: ${name}`), {
    skip: (name: string) => lines.push(`${group}: skipped, ${name}`),
  });
  storeConformance(
    { describe, it: test },
    { name: "store", makeStore: simpleStore, leaveOut: leaveOut as Partial<Record<StoreGroup, string>> },
  );
  return lines;
}

it("the report shows why a group is left out, and has the others", () => {
  const lines = report({ consumeAll: "one row at a time" });
  expect(lines.filter((line) => line.startsWith("consumeAll: "))).toEqual(["consumeAll: skipped, left out: one row at a time"]);
  expect(report({}).length - lines.length).toBeGreaterThan(5);
});

it("a group that does not exist, and one without a reason, is refused", () => {
  expect(() => report({ consumAll: "one row at a time" })).toThrow(
    /names no group "consumAll"\. The groups are: vectors, .*slots, holds\./,
  );
  expect(() => report({ consumeAll: " " })).toThrow('leaveOut needs a reason for "consumeAll": a text.');
});

it("the suites change nothing global in the process that runs them", () => {
  const source = join(__dirname, "../src");
  for (const file of readdirSync(source, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"))) {
    expect(readFileSync(join(source, file), "utf8"), file).not.toMatch(
      /globalThis|console\.\w+ =|Date\.now =|removeAllListeners|process\.env\[.*\] =/,
    );
  }
});
