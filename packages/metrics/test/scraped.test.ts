import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type PrometheusServer, promtool, startPrometheus } from "@floodgate/test-servers";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { requests, type ScrapedApp, startApp } from "./scraped-app.js";

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly refId: string; readonly expr: string }[];
}

const { panels, annotations } = JSON.parse(readFileSync(join(__dirname, "../grafana/floodgate.json"), "utf8")) as {
  panels: Panel[];
  annotations: { list: { name: string; target: { expr: string } }[] };
};
const waiting = { timeout: 20_000, interval: 50 };
const alerts = join(__dirname, "../prometheus/alerts.yaml");

/** A query as Grafana sends it, with all jobs, instances and rules selected. */
const asSent = (expr: string): string =>
  expr
    .replaceAll("$__rate_interval", "10m")
    .replaceAll("[2m]", "[10m]")
    .replaceAll(/"\$\w+"/g, '".*"');
const queries = [
  ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr, refId }) => ({ title, refId, query: asSent(expr) }))),
  ...annotations.list.map(({ name, target }) => ({ title: name, refId: "the annotation", query: asSent(target.expr) })),
];

/**
 * What the panels show for the second run of the traffic. Rates have the same factor for all series, so they are compared with the rate of
 * one request. Shares and numbers are as they are.
 */
const expected: readonly Expected[] = [
  { title: "Requests", refId: "A", per: "second", values: { "": 70 } },
  { title: "Rejected", refId: "A", per: "second", values: { "": 20 } },
  { title: "Share rejected", refId: "A", values: { "": near(20 / 70) } },
  { title: "Would be rejected", refId: "A", per: "second", values: { "": 3 } },
  { title: "Decided without the store", refId: "A", per: "second", values: { "": 3 } },
  { title: "Processes", refId: "A", values: { "": 1 } },
  {
    title: "Requests by result",
    refId: "A",
    per: "second",
    values: { allowed: 40, limited: 16, banned: 2, delayed: 4, "failed-open": 3, exempt: 3, "missing-key": 2 },
  },
  {
    title: "Decisions by result",
    refId: "A",
    per: "second",
    values: { allowed: 45, limited: 16, banned: 2, delayed: 4, "shadow-limited": 3, "failed-open": 3, exempt: 3, "missing-key": 2 },
  },
  { title: "Without the store by rule", refId: "A", per: "second", values: { "failed-open unreachable": 3 } },
  { title: "Keys changed by hand", refId: "A", per: "second", values: { "blocked tokens": 1, "unblocked tokens": 1 } },
  {
    title: "Rejected by rule",
    refId: "A",
    per: "second",
    values: { api: 5, login: 4, narrow: 3, orders: 2, partners: 2, queue: 2, closed: 1, last: 1 },
  },
  {
    title: "Share rejected by rule",
    refId: "A",
    values: {
      api: near(5 / 15),
      login: near(4 / 6),
      orders: near(2 / 7),
      partners: near(2 / 3),
      queue: near(2 / 7),
      closed: 1,
      narrow: near(3 / 7),
      last: 0.25,
    },
  },
  {
    title: "Rules now",
    refId: "A",
    values: {
      api: 10,
      login: 2,
      trial: 5,
      queue: 5,
      partners: 100,
      live: 102,
      orders: 10,
      unreachable: 10,
      tokens: 100,
      sessions: 100,
      uploads: 3,
      wide: 6,
      narrow: 4,
      last: 3,
    },
  },
  { title: "Rules now", refId: "C", values: { trial: 1 } },
  {
    title: "Share near the limit by rule",
    refId: "A",
    values: { api: 0.2, login: 0.5, trial: 0.2, queue: 0.2, orders: 0.2, narrow: 0.25, last: near(1 / 3) },
  },
  { title: "Rejections per near-limit request", refId: "A", values: { api: 2.5, login: 4, queue: 2, orders: 2, narrow: 3, last: 1 } },
  { title: "Rules that reject", refId: "A", values: { "": 8 } },
  { title: "Rules that reject", refId: "B", values: { "": 15 } },
  { title: "Bans by rule", refId: "A", per: "second", values: { "enforced login": 1 } },
  { title: "Shadow rules: share that would be rejected", refId: "A", values: { trial: 0.375 } },
  {
    title: "Not counted, or without a key",
    refId: "A",
    per: "second",
    values: { "exempt partners": 3, "missing-key partners": 2 },
  },
  { title: "Breakers not closed", refId: "A", values: { "": 1 } },
  { title: "Circuit breakers by state", refId: "A", values: { closed: 2, open: 1 } },
  { title: "Store errors by code", refId: "A", per: "second", values: { FLOODGATE_STORE_FAULT: 3 } },
  // Two clients under each of nine rules, what their bans take, and two sessions.
  { title: "Keys in memory", refId: "A", values: { "": 22 } },
  { title: "Evictions by rule", refId: "A", per: "second", values: { sessions: 5 } },
  // One rejection of two did not reach Redis.
  { title: "Deny cache: share of rejections", refId: "A", values: { orders: 0.5 } },
  // 6 for orders, 3 to consume, 3 to settle and refund, 2 to block and unblock.
  { title: "Commands to Redis", refId: "A", per: "second", values: { ok: 14, error: 3 } },
  { title: "Commands to Redis", refId: "B", per: "second", values: { "": 17 } },
  { title: "Decisions per command", refId: "A", values: { "": 1 } },
  { title: "Refused rules", refId: "A", values: { "": 1 } },
  { title: "Reloads of rules", refId: "A", per: "second", values: { accepted: 1, refused: 1 } },
  { title: "Units charged and given back", refId: "A", per: "second", values: { "": 65 } },
  { title: "Units charged and given back", refId: "B", per: "second", values: { "": 4 } },
  { title: "Units charged and given back", refId: "C", per: "second", values: { charged: 3, refunded: 3 } },
  { title: "Slots lost", refId: "A", per: "second", values: { "retaken uploads": 1 } },
  { title: "Refunds and settlements", refId: "A", per: "second", values: { succeeded: 1 } },
  { title: "Refunds and settlements", refId: "B", per: "second", values: { succeeded: 2 } },
];

interface Expected {
  readonly title: string;
  readonly refId: string;
  readonly per?: "second";
  readonly values: Readonly<Record<string, number>>;
}

describe("a real Prometheus that scrapes an app", () => {
  let app: ScrapedApp;
  let prometheus: PrometheusServer;
  /** When everything had been scraped. */
  let time = 0;
  /** The rate of what happened once in the second run of the traffic. */
  let ofOne = 0;

  beforeAll(async () => {
    app = await startApp();
    // Begins each series, so that the first scrape has it.
    await app.traffic();
    prometheus = await startPrometheus({ targets: [{ job: "shop", address: app.address }], rules: [alerts] });
    await scraped(total(1));
    await app.traffic();
    // The fifth failure in a row opens the breaker.
    await app.send(1, "/unreachable", { "x-client": "last" });
    time = await scraped(total(2) + 1);
    const [reference] = await prometheus.query('rate(floodgate_rate_limiting_requests_total{rule="api",result="allowed"}[10m])', time);
    ofOne = (reference?.value ?? Number.NaN) / 10;
  });

  afterAll(async () => {
    await prometheus?.stop();
    await app?.stop();
  });

  /** Resolves when Prometheus knows of so many requests, with the time at which it knew all series. */
  function scraped(count: number): Promise<number> {
    return vi.waitUntil(async () => {
      // The time of Prometheus: `Date` is a fake in tests.
      const at = (performance.timeOrigin + performance.now()) / 1000;
      const [series] = await prometheus.query("sum(floodgate_rate_limiting_requests_total)", at);
      return series?.value === count && at;
    }, waiting);
  }

  it("counts each request once, under its rule and its result", async () => {
    const answer = await prometheus.query("sum by (rule, result) (floodgate_rate_limiting_requests_total) > 0", time);
    const expected = Object.entries(requests).flatMap(([rule, results]) =>
      Object.entries(results).map(([result, count]) => {
        const more = rule === "unreachable" ? 1 : rule === "sessions" ? 2 : 0;
        return `${rule} ${result} ${2 * count + more}`;
      }),
    );
    expect(answer.map(({ labels, value }) => `${labels["rule"]} ${labels["result"]} ${value}`).sort()).toEqual(expected.sort());
  });

  it("counts as many requests as the client, and as many rejections, whatever the number of rules", async () => {
    const answer = await prometheus.query("sum by (rule, result) (floodgate_rate_limiting_request_outcomes_total)", time);
    const rejecting = /^(limited|blocked|banned|missing-key|failed-closed|fallback-limited)$/;
    const counted = { passed: 0, rejected: 0 };
    for (const { labels, value } of answer) {
      // These are limiters, and the client sent them nothing.
      if (/^(tokens|sessions|uploads)$/.test(labels["rule"] ?? "")) continue;
      counted[rejecting.test(labels["result"] ?? "") ? "rejected" : "passed"] += value;
    }
    expect(counted).toEqual(app.answered);
  });

  it.each(queries)("answers the dashboard with data: $title, $refId", async ({ title, query }) => {
    const answer = await prometheus.query(query, time);
    expect(answer.length).toBeGreaterThan(0);
    for (const { value } of answer) expect(Number.isFinite(value) && (value >= 0 || title === "Age of the rules")).toBe(true);
  });

  it.each(expected)("shows what was sent: $title, $refId", async ({ title, refId, per, values }) => {
    const query = queries.find((one) => one.title === title && one.refId === refId)?.query ?? "";
    const scale = per === "second" ? ofOne : 1;
    const answer = await prometheus.query(query, time);
    const found = answer.map(({ labels, value }) => [Object.values(labels).join(" "), value / scale] as const);
    const nonZero = Object.fromEntries(found.filter(([, value]) => value !== 0).map(([name, value]) => [name, near(value)]));
    expect(nonZero).toEqual(values);
  });

  it("lets Grafana offer jobs, instances and rules", async () => {
    const answer = await prometheus.query("floodgate_rate_limiting_shadow", time);
    expect(answer.map(({ labels }) => labels["rule"]).sort()).toEqual(Object.keys(requests).sort());
    for (const { labels } of answer) expect(labels).toMatchObject({ job: "shop", instance: app.address });
  });

  it("evaluates the alert rules, and sees that rules are refused", async () => {
    await vi.waitUntil(async () => (await prometheus.query('ALERTS{alertname="FloodgateRulesRefused"}')).length === 1, waiting);
    const { groups } = (await prometheus.api("rules")) as { groups: { rules: { name: string; health: string; lastError?: string }[] }[] };
    const rules = groups.flatMap((group) => group.rules);
    expect(rules.filter(({ health }) => health === "err")).toEqual([]);
    expect(rules.length).toBeGreaterThan(5);
  });

  it("serves metrics in which promtool finds no fault", async () => {
    expect(promtool(["check", "metrics"], await app.registry.metrics())).toBe("");
  });
});

/** Without the last digits, which floating-point arithmetic decides. */
function near(value: number): number {
  return Number(value.toFixed(6));
}

/** The requests of some runs of the traffic, and those that the app itself makes when it starts. */
function total(runs: number): number {
  return (
    2 +
    runs *
      Object.values(requests)
        .flatMap((results) => Object.values(results))
        .reduce((sum, count) => sum + count, 0)
  );
}
