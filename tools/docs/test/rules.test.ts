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
