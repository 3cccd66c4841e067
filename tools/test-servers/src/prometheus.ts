import { execFile } from "node:child_process";
import { program } from "./programs.js";

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
