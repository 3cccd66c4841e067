import { createHash, timingSafeEqual } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { FloodgateError } from "@floodgate/core";
import type { Settings } from "../config/settings.js";

/** What secret files hold. */
export interface Secrets {
  /** The first one signs receipts; all are accepted. */
  readonly receipts: readonly string[] | undefined;
  readonly key: string | undefined;
  readonly redisPassword: string | undefined;
  readonly adminToken: string | undefined;
  /** Files that other users may read. */
  readonly notes: readonly string[];
}

/** @throws FloodgateError if a file cannot be read or a secret is too short. */
export function readSecrets(settings: Settings): Secrets {
  const notes: string[] = [];
  const { secretFile, keySecret } = settings;
  const receipts = secretFile === undefined ? undefined : readSecretLines("secretFile", secretFile, notes);
  for (const secret of receipts ?? []) {
    if (secret.length < 32) {
      throw wrong(
        "secretFile",
        secretFile,
        `each secret must have at least 32 characters, but one has ${secret.length}. Write one: openssl rand -hex 32`,
      );
    }
  }
  const line = (what: "redisPasswordFile" | "adminTokenFile"): string | undefined => {
    const path = settings[what];
    if (path === undefined) return undefined;
    const [secret, ...others] = readSecretLines(what, path, notes);
    if (others.length > 0) throw wrong(what, path, `it must hold one line, but has ${others.length + 1}`);
    return secret;
  };
  return {
    receipts,
    key: keySecret ?? receipts?.[0],
    redisPassword: line("redisPasswordFile"),
    adminToken: line("adminTokenFile"),
    notes,
  };
}

/** The most bytes of a file with secrets. */
const maxBytes = 65_536;

/**
 * Reads a file that holds secrets, one a line.
 * @param what the setting that names the file.
 * @param notes gets a note if other users may read the file.
 * @throws FloodgateError if it cannot be read or is empty.
 */
export function readSecretLines(what: keyof Settings, path: string, notes: string[]): string[] {
  const text = withFileErrors(what, path, () => {
    const found = statSync(path);
    if (found.isDirectory()) throw new Error("it is a directory");
    if (found.size > maxBytes) throw new Error(`it has ${found.size} bytes, above the maximum of ${maxBytes}`);
    if (found.isFile() && (found.mode & 0o077) !== 0) {
      notes.push(`Other users of this machine may read ${path} (\`${what}\`). Write chmod 600 ${path}.`);
    }
    return readFileSync(path, "utf8");
  });
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  if (lines.length === 0) throw wrong(what, path, "it is empty");
  if (/[^\t\x20-\x7e\r\n]/.test(text)) throw wrong(what, path, "it must hold printable ASCII characters only");
  return lines;
}

/** Makes a function that says whether a text is one of some secrets, in a time that says nothing about them. */
export function secretCheck(secrets: readonly string[]): (given: string) => boolean {
  // Digests have one length, so that a comparison tells nothing of the secret's.
  const digestOf = (text: string): Buffer => createHash("sha256").update(text).digest();
  const digests = secrets.map(digestOf);
  return (given) => {
    const digest = digestOf(given);
    return digests.filter((own) => timingSafeEqual(own, digest)).length > 0;
  };
}

/**
 * Uses a file that a setting names.
 * @throws FloodgateError with the setting, the path and the reason.
 */
export function withFileErrors<T>(what: keyof Settings, path: string, use: () => T): T {
  try {
    return use();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw wrong(what, path, code === "ENOENT" ? "it does not exist" : code === "EACCES" ? "this user may not read it" : message, error);
  }
}

function wrong(what: string, path: string | undefined, reason: string, cause?: unknown): FloodgateError {
  return new FloodgateError("FLOODGATE_INVALID_OPTION", `\`${what}\`: ${path} cannot be used: ${reason}.`, { cause });
}
