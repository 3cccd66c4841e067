import { lstat, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Failure } from "./failure.js";
import type { Io } from "./io.js";

/** Reads a file, or standard input for `-`. `name` is its name in messages. */
export async function readText(io: Io, file: string): Promise<{ text: string; name: string }> {
  if (file === "-") return { text: await io.readInput(), name: "stdin" };
  try {
    const found = await stat(file);
    // Reading a pipe without a writer would never end.
    if (!found.isFile())
      throw new Error(found.isDirectory() ? "it is a directory" : "it is not a regular file. Write - for standard input");
    return { text: await readFile(file, "utf8"), name: file };
  } catch (cause) {
    throw unreadable(file, cause);
  }
}

/**
 * Writes a file. `wx` does not overwrite one. If the disk is full, for example, what stood there is put back.
 * @throws Failure if it cannot be written.
 */
export async function writeText(file: string, text: string, flag: "w" | "wx" = "w"): Promise<void> {
  const isNew = await lstat(file).then(
    () => false,
    ({ code }) => code === "ENOENT",
  );
  const before = await contentOf(file);
  try {
    await writeFile(file, text, { flag });
  } catch (cause) {
    if (isNew) await rm(file, { force: true }).catch(() => undefined);
    else if (before !== undefined && flag === "w") await writeFile(file, before).catch(() => undefined);
    throw unwritable(file, cause);
  }
}

/** Undefined for what is no file, such as a terminal, and for a file that cannot be read. */
async function contentOf(file: string): Promise<Buffer | undefined> {
  try {
    return (await stat(file)).isFile() ? await readFile(file) : undefined;
  } catch {
    return undefined;
  }
}

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

/** @param path where the file really is, if its name is a link. */
function unwritable(file: string, cause: unknown, path: string = file): Failure {
  const { code, message } = cause as NodeJS.ErrnoException;
  const why = code === "ENOENT" ? `${dirname(path)} does not exist` : message;
  return new Failure("unwritable", `${file} cannot be written: ${why}.`, { cause });
}

export function unreadable(file: string, cause: unknown): Failure {
  const { code, message } = cause as NodeJS.ErrnoException;
  // A variable of the shell that is not set.
  if (file === "") return new Failure("usage", "the name of a file is empty.", { cause });
  return new Failure("usage", code === "ENOENT" ? `${file} does not exist.` : `${file} cannot be read: ${message}.`, { cause });
}
