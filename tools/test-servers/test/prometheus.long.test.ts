import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PrometheusServer, promtool, startPrometheus } from "../src/index.js";
import { until } from "../src/until.js";

describe("Prometheus", () => {
  const dir = mkdtempSync(join(tmpdir(), "floodgate-prometheus-test-"));
  const rules = join(dir, "rules.yml");
  let app: Server;
  let prometheus: PrometheusServer;

  beforeAll(async () => {
    app = createServer((req, res) => {
      res.setHeader("Content-Type", "text/plain; version=0.0.4");
      res.end(req.url === "/metrics" ? 'answers_total{kind="right"} 42\nlargest_bucket{le="+Inf"} +Inf\n' : "");
    }).listen(0, "127.0.0.1");
    await once(app, "listening");
    writeFileSync(rules, "groups: [{ name: test, rules: [{ record: answers:double, expr: 2 * answers_total }] }]\n");
    const address = `127.0.0.1:${(app.address() as AddressInfo).port}`;
    prometheus = await startPrometheus({ targets: [{ job: "app", address }], rules: [rules] });
  });

  afterAll(async () => {
    await prometheus?.stop();
    app.close();
    rmSync(dir, { recursive: true });
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

  it("ends with the process that started it, however that ends", async () => {
    // What it leaves there is removed with the folder.
    const env = { ...process.env, TMPDIR: dir };
    const owner = fork(join(__dirname, "owner.mjs"), ["prometheus"], { env, execArgv: [], stdio: ["ignore", "ignore", "ignore", "ipc"] });
    const [port] = await once(owner, "message");
    const answers = (): Promise<boolean> => fetch(`http://127.0.0.1:${port}/-/ready`).then(Boolean, () => false);
    expect(await answers()).toBe(true);
    owner.kill("SIGKILL");
    await until("it has ended", async () => !(await answers()));
  });

  it("comes with promtool, which reads metrics and tells their faults", () => {
    expect(promtool(["check", "metrics"], "# HELP answers_total Answers.\n# TYPE answers_total counter\nanswers_total 1\n")).toBe("");
    expect(() => promtool(["check", "metrics"], "# HELP answers Answers.\n# TYPE answers counter\nanswers 1\n")).toThrow("_total");
    expect(promtool(["check", "rules", rules])).toContain("1 rules found");
  });
});
