import { randomUUID } from "node:crypto";
import { type FileHandle, open, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AppNames, fileSource, type LogSource, type SimulateOptions } from "@floodgate/simulator";
import type { Command } from "commander";
import { keySecret } from "./app.js";
import { Failure } from "./failure.js";
import { unreadable } from "./files.js";
import type { Io } from "./io.js";
import { collect, ipv6PrefixOption, namedValue, wholeNumber } from "./options.js";
import { didYouMean, listOf } from "./output/format.js";

/** How much of a temporary file is read at once. */
const chunkBytes = 256 * 1024;

/** The options that say how logs are read. */
export interface ReplayOptions {
  readonly format?: string;
  readonly key?: readonly string[];
  readonly cost?: readonly string[];
  readonly plan?: string;
  readonly ip?: string;
  readonly ipv6Prefix: number;
  readonly reorder: number;
  readonly maxClients: number;
  readonly top: number;
}

export function replayOptions(command: Command): Command {
  command
    .option("--format <format>", "the log's format: a name, or as in nginx's log_format; default: found out")
    .option(
      "--key <name=field>",
      "the field that holds one of the app's keys: user='$http_x_user', user=header:x-user, user=req.user.id (repeatable)",
      collect,
    )
    .option("--cost <name=field>", "the field that holds one of the app's costs (repeatable)", collect)
    .option("--plan <field>", "the field that holds the plan")
    .option("--ip <field>", "the field that holds the client address, if it is not the usual one");
  return ipv6PrefixOption(command)
    .option("--reorder <requests>", "how many requests are sorted by time at once", wholeNumber(1, 10_000_000), 10_000)
    .option("--max-clients <clients>", "how many clients are measured; bounds the memory", wholeNumber(1, 2 ** 23), 1_000_000)
    .option("--top <clients>", "how many clients are listed", wholeNumber(1, 1000), 10);
}

/** The options of a simulation, from those of the command. */
export function replayOptionsOf(options: ReplayOptions, names: AppNames): SimulateOptions {
  const { format, plan, ip, ipv6Prefix, reorder, maxClients, top } = options;
  const keys = fieldsOf("key", options.key, names.keys);
  const costs = fieldsOf("cost", options.cost, names.costs);
  const address = ip && withoutQuotes(ip).replace(/^\$/, "");
  return { format, keys, costs, plan: plan && withoutQuotes(plan), address, ipv6Prefix, reorder, maxClients, top, ...keySecret() };
}

function fieldsOf(option: string, texts: readonly string[] = [], known: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const [name, field] = namedValue(option, text, "=", "'user=$http_x_user'");
      if (known.includes(name)) return [name, withoutQuotes(field)];
      throw new Failure(
        "usage",
        `no rule uses the ${option} ${JSON.stringify(name)}.${didYouMean(name, known)} The app's ${option}s in these rules: ${listOf(known)}.`,
      );
    }),
  );
}

/** A field in quotes that the shell has left: `user='$http_x_user'` inside of other quotes. */
function withoutQuotes(field: string): string {
  return /^(['"])(.*)\1$/.exec(field)?.[2] ?? field;
}

/** A log, and its size if it is a file. */
export interface SizedSource {
  readonly source: LogSource;
  readonly bytes: number | undefined;
}

/**
 * The logs with these names; `-` is standard input.
 * @throws Failure if a file cannot be read.
 */
export function logSources(io: Io, names: readonly string[]): Promise<SizedSource[]> {
  return Promise.all(
    names.map(async (name): Promise<SizedSource> => {
      if (name === "-") return { source: { name: "stdin", once: true, open: () => io.input }, bytes: undefined };
      try {
        const found = await stat(name);
        if (found.isDirectory()) throw new Error("it is a directory. Write its files: logs/*");
        // A named pipe can be read only once, and its size is unknown.
        const source = { name, open: () => readFile(name) };
        return found.isFile() ? { source, bytes: found.size } : { source: { ...source, once: true }, bytes: undefined };
      } catch (cause) {
        throw unreadable(name, cause);
      }
    }),
  );
}

/** The bytes of a file. @throws Failure if it cannot be read. */
async function* readFile(name: string): AsyncGenerator<Uint8Array> {
  try {
    yield* fileSource(name).open();
  } catch (cause) {
    throw unreadable(name, cause);
  }
}

/** Calls `use` with logs that can be read several times: what can be read only once is written to a temporary file. */
export async function withRepeatable<T>(sources: readonly SizedSource[], use: (sources: readonly SizedSource[]) => Promise<T>): Promise<T> {
  const kept: FileHandle[] = [];
  try {
    const repeatable = sources.map(async (sized): Promise<SizedSource> => {
      const { source } = sized;
      if (source.once !== true) return sized;
      const handle = await openUnnamed().catch(cannotKeep);
      kept.push(handle);
      await writeFile(handle, source.open()).catch(cannotKeep);
      const open = () => handle.createReadStream({ start: 0, autoClose: false, highWaterMark: chunkBytes });
      return { source: { name: source.name, open }, bytes: (await handle.stat()).size };
    });
    return await use(await Promise.all(repeatable));
  } finally {
    for (const handle of kept) await handle.close();
  }
}

/** A temporary file without a name: a command that is killed leaves nothing behind. */
async function openUnnamed(): Promise<FileHandle> {
  const path = join(tmpdir(), `floodgate-${randomUUID()}`);
  const handle = await open(path, "wx+", 0o600);
  await rm(path);
  return handle;
}

function cannotKeep(cause: Error): never {
  if (cause instanceof Failure) throw cause;
  const what = `the log cannot be kept in ${tmpdir()}, to read it again: ${cause.message}.`;
  throw new Failure("unwritable", `${what} Set TMPDIR to a folder with space, or name files.`, { cause });
}
