import { readFile, writeFile } from "node:fs/promises";
import type { Command } from "commander";
import { Failure } from "../failure.js";
import { type Io, paint } from "../io.js";
import { readText } from "../load-rules.js";
import type { Migration } from "../migrate/index.js";
import { type Library, libraries } from "../migrate/libraries.js";
import { examples } from "../options.js";
import { count, didYouMean } from "../output/format.js";
import { json, sanitizeLines } from "../output/terminal.js";

interface MigrateOptions {
  readonly write?: true;
  readonly json?: true;
}

export function addMigrate(program: Command, io: Io): void {
  const command = program
    .command("migrate")
    .description("Rewrite the calls of another rate limiter in a JavaScript or TypeScript file.")
    .argument("<library>", libraries.join(", "))
    .argument("<file>", "the file; - for standard input")
    .option("--write", "change the file; without it, the new code is printed")
    .option("--json", "print JSON");
  examples(command, "migrate express-rate-limit app.js", "migrate express-rate-limit app.ts --write").action(
    (peer: string, file: string, options: MigrateOptions) => migrateFile(io, peer, file, options),
  );
}

async function migrateFile(io: Io, peer: string, file: string, options: MigrateOptions): Promise<void> {
  const library = libraries.find((name) => name === peer);
  if (library === undefined) {
    throw new Failure("usage", `migrate does not know ${peer}.${didYouMean(peer, libraries)} It knows ${libraries.join(", ")}.`);
  }
  if (file === "-" && options.write === true) throw new Failure("usage", "--write needs a file. Remove it to print the new code.");
  const { text, name } = await readText(io, file);
  // Loaded here, because other commands need no parser.
  const { migrate } = await import("../migrate/index.js");
  const migration = migrate(library, name, text);
  const isWritten = options.write === true && migration.code !== text;
  if (isWritten) await write(file, text, migration.code);
  if (options.json === true) io.out(json({ library, file: name, written: isWritten, ...migration }));
  else if (migration.calls.length > 0 || migration.byHand.length > 0) io.out(textOf(io, library, name, migration, isWritten));
  if (migration.byHand.length > 0) {
    throw new Failure("refused", `${count(migration.byHand.length, "thing")} in ${name} to do by hand.`);
  }
  if (migration.calls.length === 0) throw new Failure("refused", `${name} imports ${library}, but calls nothing of it.`);
}

async function write(file: string, text: string, code: string): Promise<void> {
  try {
    // Other bytes than those of the text would be lost.
    if (!(await readFile(file)).equals(Buffer.from(text))) {
      throw new Failure("refused", `${file} is not UTF-8 text, or has changed meanwhile. Save it as UTF-8, and try again.`);
    }
    await writeFile(file, code);
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    throw new Failure("unwritable", `${file} cannot be written: ${(cause as Error).message}.`, { cause });
  }
}

function textOf(io: Io, library: Library, name: string, { calls, byHand, notes, packages }: Migration, isWritten: boolean): string {
  const parts = calls.map(({ line, before, after }) =>
    [
      paint(io, "bold", `${name}:${line}`),
      ...lines("-", before).map((text) => paint(io, "red", text)),
      ...lines("+", after).map((text) => paint(io, "green", text)),
    ].join("\n"),
  );
  const remarks = (title: string, list: Migration["byHand"]): string[] =>
    list.length === 0 ? [] : [[title, ...list.map(({ line, column, message }) => `  ${name}:${line}:${column}: ${message}`)].join("\n")];
  parts.push(...remarks("To do by hand:", byHand), ...remarks("Notes:", notes));
  const isChanged = calls.some(({ before, after }) => before !== after);
  const next = isWritten ? `${name} is changed. ` : isChanged ? "Nothing is changed yet: add --write. " : "Nothing can be rewritten. ";
  parts.push(
    `${next}Then: npm install ${packages.join(" ")}\nWhat changes for clients: node_modules/@floodgate/core/docs/migrating/from-${library.replace("@", "").replace("/", "-")}.md`,
  );
  return `${sanitizeLines(parts.join("\n\n"))}\n`;
}

function lines(sign: string, code: string): string[] {
  return code.split("\n").map((line) => `${sign} ${line}`);
}
