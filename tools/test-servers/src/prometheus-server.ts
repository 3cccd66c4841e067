import { spawnSync } from "node:child_process";
import { loopback } from "./port.js";
import { PrivateServer, type ServerKind, startOnSparePort } from "./private-server.js";
import { program } from "./programs.js";

export interface PrometheusOptions {
  /** What it scrapes, at `/metrics`: `{ job: "app", address: "127.0.0.1:9000" }`. */
  targets: readonly { readonly job: string; readonly address: string }[];
  /** Files with recording and alert rules. */
  rules?: readonly string[];
}

/** A series that a query found. */
export interface PrometheusSeries {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A private Prometheus on 127.0.0.1 with its own folder. `startPrometheus` makes one. */
export class PrometheusServer extends PrivateServer {
  /** What the query answers now, or at a time in seconds. */
  async query(promql: string, time?: number): Promise<PrometheusSeries[]> {
    const data = await this.api("query", { query: promql, ...(time !== undefined && { time }) });
    const { result } = data as { result: { metric: Record<string, string>; value: [time: number, text: string] }[] };
    return result.map(({ metric, value: [, text] }) => ({ labels: metric, value: Number(text.replace("Inf", "Infinity")) }));
  }

  /**
   * The data of an answer of the HTTP API: `api("rules")`.
   * @throws Error with Prometheus's own reason.
   */
  async api(path: string, parameters: Readonly<Record<string, string | number>> = {}): Promise<unknown> {
    const url = new URL(`/api/v1/${path}`, this.url);
    for (const [name, value] of Object.entries(parameters)) url.searchParams.append(name, String(value));
    const answer = (await (await fetch(url)).json()) as { status: string; data?: unknown; error?: string };
    if (answer.status !== "success") throw new Error(`Prometheus said: ${answer.error} (${parameters["query"] ?? path})`);
    return answer.data;
  }
}

/**
 * Starts a Prometheus on a spare port, and resolves when it answers. It ends with this process at the latest.
 * @throws Error with its log if it does not start.
 */
export function startPrometheus({ targets, rules = [] }: PrometheusOptions): Promise<PrometheusServer> {
  // How often it scrapes and evaluates rules, and how long a scrape may take.
  const interval = "500ms";
  const config = {
    global: { scrape_interval: interval, scrape_timeout: interval, evaluation_interval: interval },
    rule_files: rules,
    scrape_configs: targets.map(({ job, address }) => ({ job_name: job, static_configs: [{ targets: [address] }] })),
  };
  const kind: ServerKind = {
    name: "Prometheus",
    command: ({ dir, port }) => [
      program("prometheus"),
      `--config.file=${dir}/prometheus.yml`,
      `--storage.tsdb.path=${dir}/data`,
      `--web.listen-address=${loopback}:${port}`,
    ],
    // JSON is YAML.
    files: () => ({ "prometheus.yml": JSON.stringify(config) }),
    async ready(server) {
      // Make sure that this process is the one that listens on the port.
      const flags = (await (server as PrometheusServer).api("status/flags")) as Record<string, string>;
      return flags["storage.tsdb.path"] === `${server.dir}/data` && (await fetch(`${server.url}/-/ready`)).ok;
    },
  };
  return startOnSparePort((port) => new PrometheusServer(kind, port));
}

/**
 * Runs promtool, and returns what it wrote: `promtool(["check", "metrics"], exposition)`.
 * @throws Error with what it wrote if it finds a fault.
 */
export function promtool(args: readonly string[], input = ""): string {
  const { status, stdout, stderr, error } = spawnSync(program("promtool"), args, { input, encoding: "utf8" });
  const output = `${stdout}${stderr}`.trim();
  if (status !== 0) throw new Error(`promtool ${args.join(" ")}: ${output}`, { cause: error });
  return output;
}
