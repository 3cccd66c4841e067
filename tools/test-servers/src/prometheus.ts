import { execFile } from "node:child_process";
import { onPath, program } from "./program.js";

let path: Promise<string> | undefined;

/**
 * The program that `startPrometheus` runs: prometheus from the PATH, else installed if possible (as root, or in CI). Its package has
 * promtool too.
 * @throws Error that says what to install.
 */
export function prometheusServer(): Promise<string> {
  path ??= program(() => (onPath("promtool") === undefined ? undefined : onPath("prometheus")), "prometheus").catch((error: Error) => {
    throw new Error(
      `There is no prometheus with promtool on the PATH, and ${error.message}. Install it: apt-get install prometheus, or brew install prometheus.`,
    );
  });
  return path;
}

/**
 * Runs promtool, and resolves with what it wrote: `promtool(["check", "metrics"], exposition)`.
 * @throws Error with what it wrote if it finds a fault.
 */
export async function promtool(args: readonly string[], input = ""): Promise<string> {
  await prometheusServer();
  return new Promise((resolve, reject) => {
    const child = execFile("promtool", [...args], (error, stdout, stderr) => {
      const output = `${stdout}${stderr}`.trim();
      if (error === null) resolve(output);
      else reject(new Error(`promtool ${args.join(" ")}: ${output || error.message}`));
    });
    // It may end without reading.
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
  });
}
