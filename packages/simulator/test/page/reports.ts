import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { reportHtml, type SimulateOptions, simulate, simulationReport } from "../../src/index.js";
import { logOf, rules } from "../logs.js";

/** Reports in a folder of their own, which is deleted at the end. */
export class Reports {
  readonly #folder = mkdtempSync(join(tmpdir(), "floodgate-report-"));
  #files = 0;

  /** Writes the report of a log under rules, and returns the path of the file: a new one, or `file`. */
  async write(
    content: string | Uint8Array,
    yaml: string,
    options: SimulateOptions & { grid?: number } = {},
    command = "floodgate simulate",
    file = join(this.#folder, `${this.#files++}.html`),
  ): Promise<string> {
    const logs = [logOf(content)];
    const set = rules(yaml);
    const report = await simulationReport(logs, set, await simulate(logs, set, options), options, { atMs: Date.UTC(2026, 0, 2), command });
    writeFileSync(file, reportHtml(report));
    return file;
  }

  delete(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
