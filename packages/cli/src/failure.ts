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
