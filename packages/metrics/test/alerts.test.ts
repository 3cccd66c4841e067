import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promtool } from "@floodgate/test-servers";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { allRuns } from "../../../test/runs.js";
import { instrumentOf, isExplained, labelsOf, metricsIn } from "./promql.js";

const file = join(__dirname, "../prometheus/alerts.yaml");
const tests = ["alerts.test.yaml", "alerts.day.test.yaml"];

interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels?: { readonly severity?: string };
  readonly annotations?: { readonly summary?: string; readonly description?: string };
}

interface UnitTests {
  readonly tests: readonly {
    readonly alert_rule_test?: readonly {
      readonly alertname: string;
      readonly eval_time: string;
      readonly exp_alerts: readonly unknown[];
    }[];
  }[];
}

const rules = (parse(readFileSync(file, "utf8")) as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules);
const alerts = rules.filter((rule) => rule.alert !== undefined);
const unitTests = tests
  .flatMap((name) => (parse(readFileSync(join(__dirname, name), "utf8")) as UnitTests).tests)
  .flatMap((test) => test.alert_rule_test ?? []);

describe("the alert rules", () => {
  it("are valid", () => {
    expect(promtool(["check", "rules", file])).toContain(`${rules.length} rules found`);
  });

  it.each(tests.slice(0, allRuns ? undefined : 1))("pass their unit tests: %s", (name) => {
    expect(promtool(["test", "rules", join(__dirname, name)])).toContain("SUCCESS");
  });

  it.each(alerts)("$alert says what to do, and when it fires", ({ alert, for: wait, labels, annotations }) => {
    expect(wait).toMatch(/^\d+[mh]$/);
    expect(labels?.severity).toMatch(/^(info|warning|critical)$/);
    expect(annotations?.summary).toContain("{{ $labels.job }}");
    expect(annotations?.description?.length).toBeGreaterThan(100);
    const counts = unitTests.filter(({ alertname }) => alertname === alert).map(({ exp_alerts }) => exp_alerts.length);
    expect(counts.some((count) => count > 0)).toBe(true);
    expect(counts[0]).toBe(0);
  });

  it.each(rules.map((rule) => ({ ...rule, name: rule.alert ?? rule.record })))("$name uses metrics and labels that exist", ({ expr }) => {
    for (const { name, labels } of metricsIn(expr)) {
      const instrument = instrumentOf(name);
      for (const { label, words } of labels) {
        expect(labelsOf(instrument)).toContain(label);
        for (const word of words.split("|")) expect(isExplained(label, word), word).toBe(true);
      }
    }
    // What is recorded has a rule that records it.
    for (const [name] of expr.matchAll(/\b\w+:\w+:\w+\b/g)) expect(rules.map((rule) => rule.record)).toContain(name);
  });
});
