import { expect, test } from "vitest";
import { withBackports } from "../src/apt.js";

test("backports are added to sources of the release, and to no other source", () => {
  const [release, other] = ["Suites: trusty trusty-updates", "Suites: trusty-security"];
  const sources = (suites: string): string => `Types: deb\nURIs: http://mirror.example/debian\n${suites}\nComponents: main\n`;
  const before = `${sources(release)}\n${sources(other)}`;
  expect(withBackports(before, "trusty")).toBe(`${sources("Suites: trusty trusty-backports trusty-updates")}\n${sources(other)}`);
});

test("backports are added in the one-line format too", () => {
  const release = "deb [signed-by=/key.gpg] http://mirror.example/debian trusty main contrib\n";
  const others = "# deb http://mirror.example/old trusty main\ndeb http://mirror.example/debian trusty-updates main\n";
  const backports = "deb [signed-by=/key.gpg] http://mirror.example/debian trusty-backports main contrib\n";
  expect(withBackports(release + others, "trusty")).toBe(release + backports + others);
});
