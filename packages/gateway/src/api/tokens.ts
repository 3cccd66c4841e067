import { statSync } from "node:fs";
import { invalidOption } from "@floodgate/core/rules";
import type { Logger } from "pino";
import { readSecretLines, secretCheck } from "../service/secrets.js";

/** How often the file is looked at, at most. */
const everyMs = 1000;

/**
 * Makes a function that says whether a bearer token is in a file, which has one a line. A change of the file applies within a second, so that tokens
 * can be rotated. The function takes the same time for each token.
 * @throws FloodgateError if the file cannot be read or a token is too short.
 */
export function tokenCheck(path: string, log: Logger, now: () => number = () => performance.now()): (token: string) => boolean {
  let version = versionOf(path);
  const notes: string[] = [];
  let isToken = secretCheck(tokensIn(path, notes));
  for (const note of notes) log.warn(note);
  let lookedMs = now();
  const reload = (): void => {
    if (now() - lookedMs < everyMs) return;
    lookedMs = now();
    const found = versionOf(path);
    if (found === version) return;
    try {
      isToken = secretCheck(tokensIn(path, []));
      log.info({ file: path }, "The tokens of the JSON API were read again");
    } catch (error) {
      log.error({ file: path, reason: (error as Error).message }, "The new tokens of the JSON API are invalid. The old ones stay in force");
    }
    version = found;
  };
  return (token) => {
    reload();
    return isToken(token);
  };
}

const shortest = 16;

function tokensIn(path: string, notes: string[]): string[] {
  const tokens = readSecretLines("apiTokenFile", path, notes);
  if (tokens.every((token) => /^[\w.~+/=-]+$/.test(token) && token.length >= shortest)) return tokens;
  throw invalidOption(
    `\`apiTokenFile\`: ${path} cannot be used: each line must be a token of at least ${shortest} letters, digits or -._~+/=, but one is not. Write one: openssl rand -hex 32.`,
  );
}

function versionOf(path: string): string {
  try {
    const { mtimeMs, size, ino } = statSync(path);
    return `${mtimeMs} ${size} ${ino}`;
  } catch {
    return "missing";
  }
}
