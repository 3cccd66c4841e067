import { execFile } from "node:child_process";
import { loopback } from "./port.js";
import { type ServerKind, started } from "./private-server.js";
import { program } from "./programs.js";
import { WebServer } from "./web-servers.js";

export interface PrometheusOptions {
  /** What it scrapes: `{ job: "app", address: "127.0.0.1:9000" }`. The metrics are at `/metrics` unless `path` is given. */
  targets: readonly ScrapeTarget[];
  /** Files with recording and alert rules. */
  rules?: readonly string[];
  /** How often it scrapes and evaluates rules, and how long a scrape may take. Default 500. */
  intervalMs?: number;
}

export interface ScrapeTarget {
  readonly job: string;
  readonly address: string;
  readonly path?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** A series that a query found: its labels, and its values in order of time (an instant query has one). */
export interface PrometheusSeries {
  readonly labels: Readonly<Record<string, string>>;
  readonly values: readonly number[];
}

/** A private Prometheus on 127.0.0.1 with its own folder. `startPrometheus` makes one. */
export class PrometheusServer extends WebServer {
  get address(): string {
    return `${loopback}:${this.port}`;
  }

  /** What the query answers now, or at a time in seconds; a scalar is a series without labels. */
  async query(promql: string, time?: number): Promise<PrometheusSeries[]> {
    return seriesOf((await this.api("query", { query: promql, ...(time === undefined ? {} : { time }) })) as QueryData);
  }

  /** What the query answers over a stretch of time; times are in seconds. */
  async queryRange(promql: string, start: number, end: number, step: number): Promise<PrometheusSeries[]> {
    return seriesOf((await this.api("query_range", { query: promql, start, end, step })) as QueryData);
  }

  /**
   * The data of an answer of the HTTP API: `api("rules")`.
   * @throws Error with Prometheus's own reason.
   */
  api(path: string, parameters: Readonly<Record<string, string | number>> = {}): Promise<unknown> {
    return ask(this.port, path, parameters);
  }
}

async function ask(port: number, path: string, parameters: Readonly<Record<string, string | number>> = {}): Promise<unknown> {
  const url = new URL(`http://${loopback}:${port}/api/v1/${path}`);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.append(name, String(value));
  const answer = (await (await fetch(url)).json()) as { status: string; data?: unknown; error?: string };
  if (answer.status !== "success") throw new Error(`Prometheus said: ${answer.error} (${parameters["query"] ?? path})`);
  return answer.data;
}

/**
 * Starts a Prometheus on a spare port, and resolves when it answers. It ends with this process at the latest.
 * @throws Error with its log if it does not start.
 */
export function startPrometheus(options: PrometheusOptions): Promise<PrometheusServer> {
  const kind: ServerKind = {
    name: "Prometheus",
    command: ({ dir, port }) => [
      program("prometheus"),
      `--config.file=${dir}/prometheus.yml`,
      `--storage.tsdb.path=${dir}/data`,
      `--web.listen-address=${loopback}:${port}`,
    ],
    // JSON is YAML.
    files: () => ({ "prometheus.yml": JSON.stringify(configOf(options)) }),
    async ready({ dir, port }) {
      // Make sure that this process is the one that listens on the port.
      const flags = (await ask(port, "status/flags")) as Record<string, string>;
      return flags["storage.tsdb.path"] === `${dir}/data` && (await fetch(`http://${loopback}:${port}/-/ready`)).ok;
    },
  };
  return started((port) => new PrometheusServer(kind, port));
}

function configOf({ targets, rules = [], intervalMs = 500 }: PrometheusOptions): unknown {
  const interval = `${intervalMs}ms`;
  return {
    global: { scrape_interval: interval, scrape_timeout: interval, evaluation_interval: interval },
    rule_files: rules,
    scrape_configs: [...new Set(targets.map(({ job }) => job))].map((job) => ({
      job_name: job,
      static_configs: targets
        .filter((target) => target.job === job)
        .map(({ address, path = "/metrics", labels }) => ({ targets: [address], labels: { __metrics_path__: path, ...labels } })),
    })),
  };
}

interface QueryData {
  readonly resultType: "vector" | "matrix" | "scalar" | "string";
  readonly result: unknown;
}

interface RawSeries {
  readonly metric: Record<string, string>;
  readonly value?: readonly [number, string];
  readonly values?: readonly (readonly [number, string])[];
}

function seriesOf({ resultType, result }: QueryData): PrometheusSeries[] {
  if (resultType === "scalar" || resultType === "string") return [{ labels: {}, values: [numberOf((result as [number, string])[1])] }];
  return (result as RawSeries[]).map(({ metric, value, values = value === undefined ? [] : [value] }) => ({
    labels: metric,
    values: values.map(([, text]) => numberOf(text)),
  }));
}

function numberOf(text: string): number {
  return Number(text.replace("Inf", "Infinity"));
}

/**
 * Runs promtool, and resolves with what it wrote: `promtool(["check", "metrics"], exposition)`.
 * @throws Error with what it wrote if it finds a fault.
 */
export async function promtool(args: readonly string[], input = ""): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(program("promtool"), [...args], (error, stdout, stderr) => {
      const output = `${stdout}${stderr}`.trim();
      if (error === null) resolve(output);
      else reject(new Error(`promtool ${args.join(" ")}: ${output || error.message}`));
    });
    // It may end without reading.
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
  });
}
