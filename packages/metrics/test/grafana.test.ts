import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type DecisionResult, isRejection, type RequestResult } from "@floodgate/core/rules";
import { describe, expect, it } from "vitest";
import { type Instrument, instruments } from "../src/index.js";
import { instrumentOf, isExplained, labelsOf, metricsIn } from "./promql.js";

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly refId: string; readonly expr: string }[];
}

const { panels, templating, annotations } = JSON.parse(readFileSync(join(__dirname, "../grafana/floodgate.json"), "utf8")) as {
  panels: Panel[];
  templating: { list: { name: string; definition?: string }[] };
  annotations: { list: { target: { expr: string } }[] };
};
const queries = panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const));

/** All results, as the compiler knows them. A rule that has no key rejects too, and has no decision. */
const decisionResults: Record<DecisionResult | "missing-key", true> = {
  allowed: true,
  delayed: true,
  limited: true,
  blocked: true,
  banned: true,
  "shadow-limited": true,
  "failed-open": true,
  "failed-closed": true,
  "fallback-allowed": true,
  "fallback-limited": true,
  "missing-key": true,
};
const { "shadow-limited": _, ...ofRequests } = decisionResults;
const requestResults: Record<RequestResult, true> = { ...ofRequests, "ambiguous-path": true, exempt: true, skipped: true, uncounted: true };

describe("the Grafana dashboard", () => {
  it.each(queries)("asks for metrics, labels and words that exist: %s", (_title, query) => {
    const used = metricsIn(query);
    expect(used.length).toBeGreaterThan(0);
    for (const { name, labels } of used) {
      const instrument = instrumentOf(name);
      for (const { label, words } of labels) {
        if (label === "job" || label === "instance") continue;
        expect(labelsOf(instrument)).toContain(label);
        if (words.startsWith("$")) continue;
        for (const word of words.split("|")) expect(isExplained(label, word), word).toBe(true);
      }
    }
  });

  it("counts as rejected what core rejects, and nothing else", () => {
    const rejections = (of: object): string[] =>
      Object.keys(of)
        .filter((result) => isRejection(result as RequestResult))
        .sort();
    const used = queries.flatMap(([, query]) => metricsIn(query)).filter(({ labels }) => labels.some(({ words }) => words.includes("|")));
    for (const [name, results] of [
      ["floodgate_rate_limiting_requests_total", decisionResults],
      ["floodgate_rate_limiting_request_outcomes_total", requestResults],
    ] as const) {
      const lists = used.filter((metric) => metric.name === name).flatMap(({ labels }) => labels.map(({ words }) => words.split("|")));
      const rejecting = lists.filter((list) => list.includes("missing-key") && list.every((word) => isRejection(word as RequestResult)));
      expect(rejecting.length).toBeGreaterThan(0);
      for (const list of rejecting) expect(list.sort()).toEqual(rejections(results));
    }
  });

  it("shows every metric", () => {
    const used = new Set<Instrument>(queries.flatMap(([, query]) => metricsIn(query).map(({ name }) => instrumentOf(name))));
    expect(Object.values(instruments).filter((instrument) => !used.has(instrument))).toEqual([]);
  });

  it("defines the variables that it uses", () => {
    const texts = [
      ...queries.map(([, query]) => query),
      ...annotations.list.map(({ target }) => target.expr),
      ...templating.list.map((v) => v.definition ?? ""),
    ];
    const used = new Set(texts.flatMap((text) => text.match(/\$\w+/g) ?? []));
    // Grafana's own.
    used.delete("$__rate_interval");
    const known = templating.list.map(({ name }) => `$${name}`);
    expect(known).toEqual(expect.arrayContaining([...used]));
    expect(known).toContain("$datasource");
  });

  it("says in words what each panel shows", () => {
    for (const { type, title, description } of panels) {
      expect(title).not.toBe("");
      if (type !== "row" && type !== "text") expect(description).toMatch(/^[A-Z0-9].{30,}[.?]$/s);
    }
  });

  it("gives each panel its own id, name and place, and leaves no place empty", () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) => {
      expect(x + w).toBeLessThanOrEqual(24);
      return Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`);
    });
    expect(new Set(cells).size).toBe(cells.length);
    expect(cells.length).toBe(24 * Math.max(...panels.map(({ gridPos: { y, h } }) => y + h)));
  });
});
