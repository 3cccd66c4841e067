import { expect, test } from "vitest";
import { withBackports } from "../src/apt.js";

test("a source that offers the release offers its backports too, and no other source does", () => {
  const [release, other] = ["Suites: trusty trusty-updates", "Suites: trusty-security"];
  const sources = (suites: string): string => `Types: deb\nURIs: http://mirror.example/debian\n${suites}\nComponents: main\n`;
  const before = `${sources(release)}\n${sources(other)}`;
  expect(withBackports(before, "trusty")).toBe(`${sources("Suites: trusty trusty-backports trusty-updates")}\n${sources(other)}`);
});

test("so it is in the one-line format", () => {
  const release = "deb [signed-by=/key.gpg] http://mirror.example/debian trusty main contrib\n";
  const others = "# deb http://mirror.example/old trusty main\ndeb http://mirror.example/debian trusty-updates main\n";
  const backports = "deb [signed-by=/key.gpg] http://mirror.example/debian trusty-backports main contrib\n";
  expect(withBackports(release + others, "trusty")).toBe(release + backports + others);
});
