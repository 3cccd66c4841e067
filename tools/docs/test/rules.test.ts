import { documents } from "@floodgate/docs";
import { parseRules } from "@floodgate/rules";
import { expect, it } from "vitest";

/** The names that the apps of the pages define. */
const app = { keys: ["user", "tenant"], costs: ["tokens", "rows"] };

const blocks = documents().flatMap(({ file, blocks }) =>
  blocks
    .filter(({ language, code }) => language === "yaml" && /^rules:$/m.test(code))
    .map(({ code, line }) => ({ place: `${file}:${line}`, code, name: file.replace(/.*\//, "") })),
);

it.each(blocks)("the rules at $place are valid", ({ code, name }) => {
  expect(() => parseRules(code, name, app)).not.toThrow();
});

it("there are rules in the docs", () => {
  expect(blocks.length).toBeGreaterThan(5);
});

it("every login in the documents has a strict policy, as README and security.md advise", () => {
  // Migrated code keeps the policy that it had.
  const pages = documents().filter(({ file }) => !/migrating\/from-(express|koa|hono|rate-limiter)/.test(file));
  const logins = pages.flatMap(({ file, blocks }) =>
    blocks.flatMap(({ code }) => [...code.matchAll(/name: "?logins?\b[^\n]*(?:\n(?!.*name:).+)*/g)].map(([rule]) => `${file}: ${rule}`)),
  );
  const numbers = logins.filter((rule) => /limit:/.test(rule));
  expect(numbers.length).toBeGreaterThan(8);
  expect(numbers.filter((rule) => !/slidingWindowLog|sliding-window-log|strict: true/.test(rule))).toEqual([]);
});
