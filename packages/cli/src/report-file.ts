import { realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Failure, unwritable } from "./failure.js";

/**
 * Checks that a report can be written, before the logs are read.
 * @param inputs files that must not be overwritten.
 * @returns a function that writes the file: whole, or not at all.
 * @throws Failure, as the function does, if it cannot be written.
 */
export async function reportFile(name: string, inputs: readonly string[]): Promise<(html: string) => Promise<void>> {
  if (name === "-") throw new Failure("usage", "--html writes a file, not standard output. Write --html report.html.");
  // Where it really is, if the name is a link.
  const found = await realpath(name).catch(() => undefined);
  if (found !== undefined) {
    if (!(await stat(found)).isFile()) throw new Failure("usage", `${name} is not a file. Write --html report.html.`);
    for (const input of inputs) {
      if (found === (await realpath(input).catch(() => undefined)))
        throw new Failure("usage", `--html would overwrite ${input}. Write --html report.html.`);
    }
  }
  const path = found ?? name;
  const temporary = join(dirname(path), `.${basename(path)}.${process.pid}.tmp`);
  const written = async (text: string, end: () => Promise<void>): Promise<void> => {
    try {
      await writeFile(temporary, text);
      await end();
    } catch (cause) {
      await rm(temporary, { force: true }).catch(() => undefined);
      throw unwritable(name, cause, path);
    }
  };
  await written("", () => rm(temporary, { force: true }));
  return (html) => written(html, () => rename(temporary, path));
}
