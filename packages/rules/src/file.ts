import { readFile, stat } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import { FloodgateError } from "@floodgate/core";
import type { RulesOrigin } from "./follow.js";
import { type LiveOptions, type LiveRules, startLive } from "./live.js";
import { mostBytes } from "./yaml.js";

/**
 * The rules in a file of YAML or JSON, which is looked at every `pollMs` (default 500). That sees whatever happens to it: a file
 * written in place or replaced, a symlink that is turned, a network file system that tells nobody.
 * @throws FloodgateError `FLOODGATE_RULES_UNAVAILABLE` where the file cannot be read, a RulesError where it is bad.
 */
export async function fileRules(path: string, options: LiveOptions = {}): Promise<LiveRules> {
  if (typeof path === "string" && path !== "") return startLive("fileRules", fileOrigin(path), options, 500);
  const given = path === "" ? "an empty text" : path === null ? "null" : typeof path;
  throw new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    `fileRules: \`path\` must be a text, the path of a file, but was ${given}. Write fileRules("limits.yaml").`,
  );
}

function fileOrigin(path: string): RulesOrigin {
  let known: string | undefined;
  return {
    source: path,

    async revision() {
      const { dev, ino, size, mtimeNs, mtimeMs, ctimeNs } = await stat(path, { bigint: true });
      // Two writes within one tick of the file system's clock look the same: a file is settled once its time has passed.
      const settled = BigInt(Date.now()) - mtimeMs > settledAfterMs;
      return settled ? [dev, ino, size, mtimeNs, ctimeNs].join() : undefined;
    },

    async read() {
      // What has just been written may be half of what is to come, and half a list is a good one. What is known already is whole.
      let before = known;
      for (let looks = 0; looks < mostLooks; looks++) {
        const { text, ageMs } = await look(path);
        if (ageMs > calmMs || text === before) {
          known = text;
          return { text };
        }
        before = text;
        // Whoever waits for the first version has nothing else to keep the process alive; a later one must not.
        await setTimeout(calmMs, undefined, { ref: known === undefined });
      }
      throw new Error("it is being written all the time");
    },
  };
}

/** A file that has not changed for so long has been written to its end. */
const calmMs = 50;
const mostLooks = 40;

async function look(path: string): Promise<{ text: string; ageMs: number }> {
  const found = await stat(path);
  if (!found.isFile()) throw new Error(found.isDirectory() ? "it is a directory" : "it is no regular file");
  if (found.size > mostBytes) throw new Error(`it has ${found.size} bytes, more than the ${mostBytes} that rules may have`);
  const text = await readFile(path, "utf8");
  // A date in the future says nothing: another machine's clock has written it.
  return { text, ageMs: Math.max(0, Date.now() - (await stat(path)).mtimeMs) };
}

/** The coarsest clock of a file system in use, FAT's. */
const settledAfterMs = 2000n;
