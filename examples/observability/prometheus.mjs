import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";

/** The alert rules that `@floodgate/metrics` ships. */
export const alerts = join(dirname(createRequire(import.meta.url).resolve("@floodgate/metrics/package.json")), "prometheus/alerts.yaml");

/** Starts a Prometheus that scrapes an address and knows the alert rules. Undefined if none is installed. */
export async function startPrometheus(target) {
  const folders = (process.env.PATH ?? "").split(delimiter);
  const program = folders.map((folder) => join(folder, "prometheus")).find((file) => existsSync(file));
  if (program === undefined) return undefined;

  const folder = mkdtempSync(join(tmpdir(), "floodgate-example-"));
  const config = join(folder, "prometheus.yml");
  // YAML includes JSON.
  writeFileSync(
    config,
    JSON.stringify({
      global: { scrape_interval: "2s", evaluation_interval: "2s" },
      rule_files: [alerts],
      scrape_configs: [{ job_name: "floodgate-example", static_configs: [{ targets: [target] }] }],
    }),
  );
  const address = `127.0.0.1:${await sparePort()}`;
  const args = [`--config.file=${config}`, `--storage.tsdb.path=${join(folder, "data")}`, `--web.listen-address=${address}`];
  const child = spawn(program, args, { stdio: "ignore" });
  const ended = new Promise((resolve) => {
    child.once("error", resolve);
    child.once("exit", resolve);
  });
  return {
    url: `http://${address}`,
    async stop() {
      child.kill();
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function sparePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
