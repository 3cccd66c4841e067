import { readFile, stat } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import { wrongOption } from "@floodgate/core/rules";
import { type LiveOptions, type LiveRules, startLive } from "./live.js";
import type { RulesOrigin } from "./origin.js";
import { maxBytes } from "./yaml.js";

/**
 * Loads rules from a YAML or JSON file and follows its changes. The file is polled every `pollMs` (default 500), which also works for
 * replaced files, symlinks and network file systems.
 * @throws FloodgateError `FLOODGATE_RULES_UNAVAILABLE` if the file cannot be read; RulesError if it is invalid.
 * @example
 * const rules = await fileRules("limits.yaml");
 * app.use(rateLimit({ rules }));
 */
export async function fileRules(path: string, options: LiveOptions = {}): Promise<LiveRules> {
  if (typeof path === "string" && path !== "") return startLive("fileRules", fileOrigin(path), options, 500);
  throw wrongOption("fileRules", "path", "the path of a file", path, 'fileRules("limits.yaml")');
}

function fileOrigin(path: string): RulesOrigin {
  let lastText: string | undefined;
  return {
    source: path,

    async revision() {
      const { dev, ino, size, mtimeNs, mtimeMs, ctimeNs } = await inPlainWords(stat(path, { bigint: true }));
      // Two writes within one tick of the file system's clock look the same, so a recent date is no revision.
      const isOld = BigInt(Date.now()) - mtimeMs > coarsestTickMs;
      return isOld ? [dev, ino, size, mtimeNs, ctimeNs].join() : undefined;
    },

    async read() {
      // A file that changed just now may be half-written, and half a list of rules is valid. Wait until two reads agree.
      let before = lastText;
      for (let reads = 0; reads < maxReads; reads++) {
        const { text, ageMs } = await readOnce(path);
        if (ageMs > quietMs || text === before) {
          lastText = text;
          return { text };
        }
        before = text;
        // Only the first read may be the one thing that keeps the process alive.
        await setTimeout(quietMs, undefined, { ref: lastText === undefined });
      }
      throw new Error("it changes all the time");
    },
  };
}

/** A file that has not changed for this long is completely written. */
const quietMs = 50;
const maxReads = 40;

async function inPlainWords<Stats>(found: Promise<Stats>): Promise<Stats> {
  try {
    return await found;
  } catch (cause) {
    throw (cause as NodeJS.ErrnoException).code === "ENOENT" ? new Error("the file does not exist", { cause }) : cause;
  }
}

async function readOnce(path: string): Promise<{ text: string; ageMs: number }> {
  const found = await inPlainWords(stat(path));
  if (!found.isFile()) throw new Error(found.isDirectory() ? "it is a directory" : "it is not a regular file");
  if (found.size > maxBytes) throw new Error(`it has ${found.size} bytes, above the maximum of ${maxBytes}`);
  const text = await readFile(path, "utf8");
  // Another machine's clock may have set a date in the future.
  return { text, ageMs: Math.max(0, Date.now() - (await stat(path)).mtimeMs) };
}

/** The coarsest clock of a file system in use, FAT's. */
const coarsestTickMs = 2000n;
