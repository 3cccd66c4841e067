import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { atExit } from "./at-exit.js";
import { loopback, sparePort } from "./port.js";
import { program } from "./programs.js";
import { ServerProcess } from "./server-process.js";
import { until } from "./until.js";

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
export class PrometheusServer {
  readonly host: string = loopback;
  readonly port: number;
  readonly #dir: string;
  readonly #process: ServerProcess;
  readonly #forgetExit: () => void;

  constructor(binary: string, port: number, options: PrometheusOptions) {
    this.port = port;
    this.#dir = mkdtempSync(join(tmpdir(), "floodgate-prometheus-"));
    this.#forgetExit = atExit(() => this.#remove());
    // JSON is YAML.
    writeFileSync(join(this.#dir, "prometheus.yml"), JSON.stringify(configOf(options)));
    const args = [`--config.file=${this.#dir}/prometheus.yml`, `--storage.tsdb.path=${this.#data}`, `--web.listen-address=${this.address}`];
    this.#process = new ServerProcess(binary, args, this.#log);
  }

  get address(): string {
    return `${this.host}:${this.port}`;
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  /**
   * Resolves when it answers.
   * @throws Error with the end of its log if it ended.
   */
  async ready(): Promise<void> {
    await until(`Prometheus answers on port ${this.port}`, async () => {
      if (!this.#process.running) return true;
      // Make sure that this process is the one that listens on the port.
      const flags = (await this.api("status/flags")) as Record<string, string>;
      return flags["storage.tsdb.path"] === this.#data && (await fetch(`http://${this.address}/-/ready`)).ok;
    });
    if (!this.#process.running)
      throw new Error(`Prometheus ended. Its log ends with:\n${this.log.trim().split("\n").slice(-5).join("\n")}`);
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
  async api(path: string, parameters: Readonly<Record<string, string | number>> = {}): Promise<unknown> {
    const url = new URL(`http://${this.address}/api/v1/${path}`);
    for (const [name, value] of Object.entries(parameters)) url.searchParams.append(name, String(value));
    const answer = (await (await fetch(url)).json()) as { status: string; data?: unknown; error?: string };
    if (answer.status !== "success") throw new Error(`Prometheus said: ${answer.error} (${parameters["query"] ?? path})`);
    return answer.data;
  }

  get log(): string {
    return existsSync(this.#log) ? readFileSync(this.#log, "utf8") : "";
  }

  /** Stops it permanently, and removes its folder. */
  async stop(): Promise<void> {
    await this.#process.kill();
    this.#forgetExit();
    this.#remove();
  }

  get #data(): string {
    return join(this.#dir, "data");
  }

  get #log(): string {
    return join(this.#dir, "log");
  }

  /** Synchronous, for use at exit. */
  #remove(): void {
    this.#process.signal("SIGKILL");
    rmSync(this.#dir, { recursive: true, force: true, maxRetries: 3 });
  }
}

/**
 * Starts a Prometheus on a spare port, and resolves when it answers. It ends with this process at the latest.
 * @throws Error with its log if it does not start.
 */
export async function startPrometheus(options: PrometheusOptions): Promise<PrometheusServer> {
  const binary = program("prometheus");
  for (;;) {
    const server = new PrometheusServer(binary, await sparePort(), options);
    try {
      await server.ready();
      return server;
    } catch (error) {
      // Another process took the free port first: try the next.
      const taken = server.log.includes("address already in use");
      await server.stop();
      if (!taken) throw error;
    }
  }
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
