import type { RuleSet } from "@floodgate/core/rules";
import { type Path, parseRules, type RulesError } from "@floodgate/rules";
import fc from "fast-check";
import { expect, it } from "vitest";
import { runs } from "../../../test/runs.js";
import { ruleSets } from "../../rules/test/arbitraries.js";
import { withFurtherProblems } from "../src/rules/further-problems.js";
import { floodgate } from "./command.js";

const app = { keys: ["user", "tenant", "api_key", "plan.id"], costs: ["items", "tokens"] };

/** Wrong values: some of the wrong type, some with the wrong meaning. */
const wrong: readonly (readonly [path: Path, value: unknown])[] = [
  [["key"], "usr"],
  [["mode"], "shadw"],
  [["mode"], 5],
  [["onMissingKey"], "drop"],
  [["cost"], "itms"],
  [["cost"], 0],
  [["headers"], "no"],
  [["refundWhen"], "6xx"],
  [["limt"], 5],
  [["match", "path"], "posts"],
  [["match", "method", 1], "PO ST"],
  [["ban", "after"], 0],
  [["ban", "within"], "1 minute"],
  [["ban", "for"], "never"],
  [["policy", "limit"], -5],
  [["policy", "window"], "15 minutes"],
  [["policy", "burst"], 1.5],
  [["plans", "pro", "limit"], -1],
  [["exempt", "ips", 1], "10.0.0.x"],
  [["grants", 0, "until"], "soon"],
];

function withWrong(rule: object, mistakes: readonly (readonly [path: Path, value: unknown])[]): object {
  const copy = {
    name: (rule as { name: string }).name,
    match: { method: ["GET", "PUT"], path: "/posts" },
    key: "user",
    cost: "items",
    policy: { algorithm: "gcra", limit: 5, window: "1m", burst: 2 },
    plans: { pro: { limit: 7 } },
    ban: { after: 5, within: "1m", for: "1h" },
    exempt: { ips: ["10.0.0.0/8", "127.0.0.1"] },
    grants: [{ key: "42", plan: "pro", until: "2090-01-31" }],
  };
  for (const [path, value] of mistakes) {
    const parent = path.slice(0, -1).reduce<unknown>((part, name) => (part as Record<string, unknown>)[name], copy);
    (parent as Record<string, unknown>)[path.at(-1) as string] = value;
  }
  return copy;
}

/** Mistakes of one rule, with different paths. */
const mistakes = fc.uniqueArray(fc.constantFrom(...wrong), { selector: ([path]) => path.join(), maxLength: 6 });

function problemsOf(set: unknown): readonly { readonly path: Path; readonly message: string }[] {
  const text = JSON.stringify(set, null, 1);
  try {
    parseRules(text, "rules", app);
    return [];
  } catch (error) {
    return withFurtherProblems(text, (error as RulesError).problems, app);
  }
}

it("finds every mistake of every rule, and no other", () => {
  fc.assert(
    fc.property(ruleSets, fc.array(mistakes, { minLength: 1, maxLength: 4 }), ({ rules }: RuleSet, all) => {
      const broken = rules.map((rule, i) => (all[i] === undefined ? rule : withWrong(rule, all[i])));
      const expected = broken.flatMap((_, i) => (all[i] ?? []).map(([path]) => JSON.stringify(["rules", i, ...path])));
      const found = problemsOf({ rules: broken });
      for (const { path, message } of found) expect(message).toMatch(new RegExp(`^rules\\[${path[1]}\\]`));
      expect(new Set(found.map(({ path }) => JSON.stringify(path)))).toEqual(new Set(expected));
    }),
    runs(40),
  );
});

it("floodgate check shows all mistakes of a rule at once, sorted by their lines", async () => {
  const { out, err } = await floodgate(
    ["check", "-"],
    `exempt: { ips: [10.0.0.x, 10.0.0.y], keys: [] }
rules:
  - name: a
    mode: shadw
    limit: 0.5
    window: 15 minutes
    cost: 0
    key: [global, 5]
  - { name: a, limit: 1, window: 1 minute }
`,
  );
  expect(out.match(/^stdin:\d+:\d+/gm)).toEqual([
    "stdin:1:17",
    "stdin:1:27",
    "stdin:1:44",
    "stdin:4:11",
    "stdin:5:12",
    "stdin:6:13",
    "stdin:7:11",
    "stdin:8:19",
    "stdin:9:13",
    "stdin:9:34",
  ]);
  expect(err).toBe("floodgate: 10 problems in stdin.\n");
});

it("floodgate check shows a number that JSON does not have once", async () => {
  const { out, err } = await floodgate(["check", "-"], "rules: [{ name: a, limit: .inf, window: 1m, cost: .nan, mode: shadw }]");
  expect(out.match(/`\w+` must .* but was \S+/g)).toEqual([
    expect.stringMatching(/^`limit`.*Infinity\.$/),
    expect.stringMatching(/^`cost`.*NaN\.$/),
    expect.stringMatching(/^`mode`.*"shadw"\.$/),
  ]);
  expect(err).toBe("floodgate: 3 problems in stdin.\n");
});

it("a file with a hundred problems has enough to begin with: no more are looked for", () => {
  const rules = Array.from({ length: 100 }, (_, i) => ({ name: `r${i}`, limit: -1, window: "x" }));
  const found = problemsOf({ rules });
  expect(found.map(({ path }) => path)).toEqual(rules.map((_, i) => ["rules", i, "limit"]));
});
