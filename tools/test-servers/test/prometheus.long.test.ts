import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../test/files.js";
import { listen } from "../../../test/listen.js";
import { type PrometheusServer, promtool, startPrometheus } from "../src/index.js";
import { until } from "../src/until.js";

describe("Prometheus", () => {
  const rules = join(temporaryFolder("prometheus-test"), "rules.yml");
  let app: Server;
  let prometheus: PrometheusServer;

  beforeAll(async () => {
    app = createServer((req, res) => {
      res.setHeader("Content-Type", "text/plain; version=0.0.4");
      res.end(req.url === "/metrics" ? 'answers_total{kind="right"} 42\nlargest_bucket{le="+Inf"} +Inf\n' : "");
    });
    writeFileSync(rules, "groups: [{ name: test, rules: [{ record: answers:double, expr: 2 * answers_total }] }]\n");
    const address = `127.0.0.1:${await listen(app)}`;
    prometheus = await startPrometheus({ targets: [{ job: "app", address }], rules: [rules] });
  });

  afterAll(async () => {
    await prometheus?.stop();
    app.close();
  });

  it("scrapes its targets and evaluates rules", async () => {
    await until("the rule has a value", async () => (await prometheus.query("answers:double")).length === 1);
    const [series] = await prometheus.query("answers:double");
    expect(series?.value).toBe(84);
    expect(series?.labels).toMatchObject({ job: "app", kind: "right" });
    expect((await prometheus.query("largest_bucket"))[0]?.value).toBe(Number.POSITIVE_INFINITY);
  });

  it("says what is wrong with a query", async () => {
    await expect(prometheus.query("sum(")).rejects.toThrow("unclosed left parenthesis");
  });

  it("reports its log if it cannot start", async () => {
    await expect(startPrometheus({ targets: [{ job: "app", address: "127.0.0.1/metrics" }] })).rejects.toThrow("not a valid hostname");
  });

  it("comes with promtool, which reads metrics and tells their faults", () => {
    expect(promtool(["check", "metrics"], "# HELP answers_total Answers.\n# TYPE answers_total counter\nanswers_total 1\n")).toBe("");
    expect(() => promtool(["check", "metrics"], "# HELP answers Answers.\n# TYPE answers counter\nanswers 1\n")).toThrow("_total");
    expect(promtool(["check", "rules", rules])).toContain("1 rules found");
  });
});
