import { writeFileSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { parseArgs, stripVTControlCharacters, styleText } from "node:util";
import { glob, isDynamicPattern } from "tinyglobby";
import { isWhole, type Library, libraries, limiters, type Migration, migrate, type Remark } from "./migrate.js";

/** Where the command writes. */
export interface Output {
  out(text: string): void;
  err(text: string): void;
  readonly hasColors: boolean;
}

const help = `Usage: floodgate-migrate <library> <file...> [--write] [--json]

Rewrites the calls of another rate limiter's middleware in JavaScript and TypeScript files.
A call that it cannot rewrite surely stays as it is, and is named with its line.

Libraries:
  express-rate-limit, koa-ratelimit, hono-rate-limiter,
  @fastify/rate-limit, @nestjs/throttler       rewritten
  rate-limiter-flexible, @upstash/ratelimit    reported only, call by call

Files are paths or globs: app.js 'src/**/*.ts'

Options:
  --write   change the files; without it, the new code is printed
  --json    print JSON

Examples:
  npx @floodgate/migrate express-rate-limit app.js
  npx @floodgate/migrate express-rate-limit 'src/**/*.ts' --write

Exit codes: 0 nothing is left to do, 1 something is left to do by hand, 64 invalid arguments.
`;

/** A mistake in the arguments. */
class UsageError extends Error {}

interface Migrated extends Migration {
  readonly file: string;
  written: boolean;
}

/** Runs the command. @returns its exit code. */
export async function run(args: readonly string[], output: Output): Promise<number> {
  try {
    const { values, positionals } = parsedArguments(args);
    const [name, ...patterns] = positionals;
    if (values.help === true || name === undefined) {
      output.out(help);
      return values.help === true ? 0 : 64;
    }
    const library = libraries.find((known) => known === name);
    if (library === undefined) throw new UsageError(`it does not know ${name}. It knows ${libraries.join(", ")}.`);
    if (patterns.length === 0) throw new UsageError("no file is given. Write app.js, or 'src/**/*.ts' in quotes.");
    return await migrateFiles(library, await filesOf(patterns), values, output);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    output.err(`floodgate-migrate: ${plain(error.message)}\n`);
    return 64;
  }
}

function parsedArguments(args: readonly string[]) {
  try {
    const options = { write: { type: "boolean" }, json: { type: "boolean" }, help: { type: "boolean", short: "h" } } as const;
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** Files that a glob leaves out. */
const ignored = /(^|[\\/])(node_modules|dist)[\\/]|\.d\.[cm]?ts$/;

async function filesOf(patterns: readonly string[]): Promise<string[]> {
  const files: string[] = [];
  for (const pattern of patterns) {
    const known = await stat(pattern).catch(() => undefined);
    if (known?.isDirectory() === true)
      throw new UsageError(`${pattern} is a directory. Write '${pattern.replace(/\/+$/, "")}/**/*.ts' in quotes.`);
    // A file may have a name with brackets, as routes of Next.js have.
    const found =
      known !== undefined
        ? [pattern]
        : (await glob(pattern, { expandDirectories: false, absolute: isAbsolute(pattern) })).filter((file) => !ignored.test(file));
    if (found.length === 0) throw new UsageError(`${pattern} ${isDynamicPattern(pattern) ? "matches no file" : "does not exist"}.`);
    files.push(...found.sort());
  }
  return [...new Set(files)];
}

async function migrateFiles(
  library: Library,
  files: readonly string[],
  { write, json }: { write?: boolean | undefined; json?: boolean | undefined },
  output: Output,
): Promise<number> {
  const all: Migrated[] = [];
  const before = new Map<Migrated, Buffer>();
  let failed = 0;
  const fail = (reason: string): void => {
    output.err(`floodgate-migrate: ${plain(reason)}\n`);
    failed++;
  };
  for (const file of files) {
    try {
      const bytes = await readFile(file);
      const text = bytes.toString();
      const migration = migrate(library, file, text);
      if (migration === undefined) continue;
      const wants = write === true && migration.code !== text;
      if (wants && !Buffer.from(text).equals(bytes)) {
        fail(`${file} is not UTF-8 text, so it stays as it is. Save it as UTF-8, and try again.`);
        continue;
      }
      const migrated = { ...migration, file, written: false };
      all.push(migrated);
      if (wants) before.set(migrated, bytes);
    } catch (error) {
      fail(reasonOf(error, file));
    }
  }
  writeAll(before, fail);
  if (json === true) output.out(`${JSON.stringify(all, undefined, 2)}\n`);
  else for (const migrated of all) output.out(textOf(migrated, output));
  const left = all.reduce((sum, { byHand }) => sum + byHand.length, 0);
  if (all.length === 0 && failed === 0) {
    output.err(`floodgate-migrate: ${files.length === 1 ? `${files[0]} does not import` : "none of these files imports"} ${library}.\n`);
    return 1;
  }
  if (json !== true && all.length > 0) output.out(`${summary(library, all, write === true)}\n`);
  if (left > 0) {
    const isMixed = isWhole(library) && all.some(({ calls }) => calls.some(({ after }) => after !== undefined));
    const until = isMixed ? ` Do this before the app runs: until then, ${library} ignores the limits that are rewritten.` : "";
    output.err(`floodgate-migrate: ${left === 1 ? "1 thing" : `${left} things`} to do by hand.${until}\n`);
  }
  return left > 0 || failed > 0 ? 1 : 0;
}

/** Why a file cannot be read or written. @throws what is no fault of the file. */
function reasonOf(error: unknown, file: string): string {
  if (error instanceof SyntaxError) return error.message;
  if (error instanceof RangeError) return `${file}: its code is nested too deeply.`;
  if (error instanceof Error && "code" in error) return `${file}: ${error.message}.`;
  throw error;
}

/** Writes the new code, once all of it is known. No signal ends the process between the first file and the last. */
function writeAll(before: ReadonlyMap<Migrated, Buffer>, fail: (reason: string) => void): void {
  const ignore = (): void => undefined;
  process.on("SIGINT", ignore).on("SIGTERM", ignore);
  for (const [migrated, bytes] of before) {
    const { file, code } = migrated;
    try {
      writeFileSync(file, code);
      migrated.written = true;
    } catch (error) {
      fail(reasonOf(error, file));
      // On a full disk, the file has lost its text.
      if ((error as NodeJS.ErrnoException).syscall === "write") writeFileSync(file, bytes);
    }
  }
  process.off("SIGINT", ignore).off("SIGTERM", ignore);
}

function textOf({ file: path, calls, byHand, notes }: Migrated, { hasColors }: Output): string {
  const file = plain(path);
  const paint = (format: "bold" | "red" | "green", text: string) => (hasColors ? styleText(format, text) : text);
  const signed = (sign: "-" | "+", code: string): string[] => {
    const lines = plain(code).split("\n");
    return lines.map((line) => paint(sign === "-" ? "red" : "green", `${sign} ${line}`));
  };
  const parts: string[][] = [];
  for (const { line, before, after } of calls)
    if (after !== undefined) parts.push([paint("bold", `${file}:${line}`), ...signed("-", before), ...signed("+", after)]);
  const add = (title: string, remarks: readonly Remark[]): void => {
    if (remarks.length === 0) return;
    parts.push([title, ...remarks.map(({ line, column, message }) => `  ${file}:${line}:${column}: ${plain(message)}`)]);
  };
  add("To do by hand:", byHand);
  add("Notes:", notes);
  return parts.map((lines) => `${lines.join("\n")}\n\n`).join("");
}

function summary(library: Library, all: readonly Migrated[], isWritten: boolean): string {
  const calls = all.flatMap((one) => one.calls);
  const rewritten = calls.filter(({ after }) => after !== undefined).length;
  const packages = [...new Set(all.flatMap((one) => one.packages))];
  if (library in limiters) {
    return `${calls.length} places are named, and nothing is rewritten. A limiter may be used in files that do not import ${library}: look there too.\nWhat to write: ${pageOf(library)}`;
  }
  const what = `${rewritten} of ${calls.length} calls ${isWritten ? "are rewritten" : "can be rewritten"}.`;
  const hint = rewritten > 0 && !isWritten ? " Nothing is changed yet: add --write." : "";
  const install = packages.length === 0 ? "" : `\nThen: npm install ${packages.join(" ")}`;
  return `${what}${hint}${install}\nWhat changes for clients: ${pageOf(library)}`;
}

function pageOf(library: Library): string {
  return `node_modules/@floodgate/core/docs/migrating/from-${library.replace("@", "").replace("/", "-")}.md`;
}

/** Removes control characters, which a terminal would act on. */
function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is removed
  return stripVTControlCharacters(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "");
}
