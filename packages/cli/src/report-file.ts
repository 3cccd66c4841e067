import { realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Failure } from "./failure.js";

/** A file that a report is written to: whole, or not at all. */
export class ReportFile {
  readonly name: string;
  /** Where it really is, if the name is a link. */
  readonly #path: string;
  readonly #temporary: string;

  private constructor(name: string, path: string) {
    this.name = name;
    this.#path = path;
    this.#temporary = join(dirname(path), `.${basename(path)}.${process.pid}.tmp`);
  }

  /**
   * Checks that a report can be written, before the logs are read.
   * @param inputs files that must not be overwritten.
   * @throws Failure if it cannot be written.
   */
  static async of(name: string, inputs: readonly string[]): Promise<ReportFile> {
    if (name === "-") throw new Failure("usage", "--html writes a file, not standard output. Write --html report.html.");
    const path = await realpath(name).catch(() => undefined);
    if (path !== undefined) {
      if (!(await stat(path)).isFile()) throw new Failure("usage", `${name} is not a file. Write --html report.html.`);
      for (const input of inputs) {
        if (path === (await realpath(input).catch(() => undefined)))
          throw new Failure("usage", `--html would overwrite ${input}. Write --html report.html.`);
      }
    }
    const file = new ReportFile(name, path ?? name);
    await file.#write("");
    await rm(file.#temporary, { force: true });
    return file;
  }

  /** @throws Failure if it cannot be written. */
  async write(html: string): Promise<void> {
    await this.#write(html);
    try {
      await rename(this.#temporary, this.#path);
    } catch (cause) {
      await rm(this.#temporary, { force: true });
      throw this.#failure(cause);
    }
  }

  async #write(text: string): Promise<void> {
    try {
      await writeFile(this.#temporary, text);
    } catch (cause) {
      await rm(this.#temporary, { force: true }).catch(() => undefined);
      throw this.#failure(cause);
    }
  }

  #failure(cause: unknown): Failure {
    const { code, message } = cause as NodeJS.ErrnoException;
    const why = code === "ENOENT" ? `${dirname(this.#path)} does not exist` : message;
    return new Failure("unwritable", `${this.name} cannot be written: ${why}.`, { cause });
  }
}

/** A command as one would type it in a shell. */
export function commandText(args: readonly string[]): string {
  return ["floodgate", ...args].map((arg) => (/^[\w@%+=:,./-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", "'\\''")}'`)).join(" ");
}
