import { createHash, timingSafeEqual } from "node:crypto";
import { statSync } from "node:fs";
import { FloodgateError } from "@floodgate/core";
import type { Logger } from "pino";
import { readSecretLines } from "../service/secrets.js";

/** How often the file is looked at, at most. */
const everyMs = 1000;

/** The bearer tokens in a file, one a line. A change of the file applies within a second, so that tokens can be rotated. */
export class TokenFile {
  readonly #path: string;
  readonly #log: Logger;
  readonly #now: () => number;
  #digests: readonly Buffer[];
  #version: string;
  #lookedMs: number;

  /** @throws FloodgateError if the file cannot be read or a token is too short. */
  constructor(path: string, log: Logger, now: () => number = () => performance.now()) {
    this.#path = path;
    this.#log = log;
    this.#now = now;
    this.#version = versionOf(path);
    const notes: string[] = [];
    this.#digests = digestsIn(path, notes);
    for (const note of notes) log.warn(note);
    this.#lookedMs = now();
  }

  /** Whether a token is in the file. Takes the same time for each token. */
  has(token: string): boolean {
    this.#reload();
    const digest = digestOf(token);
    let found = false;
    for (const own of this.#digests) if (timingSafeEqual(own, digest)) found = true;
    return found;
  }

  #reload(): void {
    if (this.#now() - this.#lookedMs < everyMs) return;
    this.#lookedMs = this.#now();
    const version = versionOf(this.#path);
    if (version === this.#version) return;
    try {
      this.#digests = digestsIn(this.#path, []);
      this.#log.info({ file: this.#path }, "The tokens of the JSON API were read again");
    } catch (error) {
      this.#log.error(
        { file: this.#path, reason: (error as Error).message },
        "The new tokens of the JSON API are invalid. The old ones stay in force",
      );
    }
    this.#version = version;
  }
}

const shortest = 16;

function digestsIn(path: string, notes: string[]): Buffer[] {
  return readSecretLines("apiTokenFile", path, notes).map((token) => {
    if (/^[\w.~+/=-]+$/.test(token) && token.length >= shortest) return digestOf(token);
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `\`apiTokenFile\`: ${path} cannot be used: each line must be a token of at least ${shortest} letters, digits or -._~+/=, but one is not. Write one: openssl rand -hex 32.`,
    );
  });
}

/** Digests have one length, so that a comparison tells nothing of the token's. */
function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

function versionOf(path: string): string {
  try {
    const { mtimeMs, size, ino } = statSync(path);
    return `${mtimeMs} ${size} ${ino}`;
  } catch {
    return "missing";
  }
}
