import { dirname } from "node:path";

/**
 * Exit codes: success, refused (invalid rules, another version), Redis does not answer, invalid arguments, and output that cannot be
 * written. The last two are EX_USAGE and EX_IOERR of sysexits.
 */
export const exitCodes = { ok: 0, refused: 1, unreachable: 2, usage: 64, unwritable: 74 } as const;

type Reason = Exclude<keyof typeof exitCodes, "ok">;

/** The error of a command, with its exit code. The message says what to do. */
export class Failure extends Error {
  readonly exitCode: number;

  constructor(reason: Reason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "Failure";
    this.exitCode = exitCodes[reason];
  }
}

/** @param path where the file really is, if its name is a link. */
export function unwritable(file: string, cause: unknown, path: string = file): Failure {
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
