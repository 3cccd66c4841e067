/**
 * What the command ends with: all is well, no (bad rules, another version), Redis does not answer, it was called wrongly, or what it
 * has to say cannot be written. The last two are those of sysexits.
 */
export const exitCodes = { ok: 0, refused: 1, unreachable: 2, usage: 64, unwritable: 74 } as const;

type Why = Exclude<keyof typeof exitCodes, "ok">;

/** Why a command could not do what it was asked; the message says what to do. */
export class Failure extends Error {
  readonly exitCode: number;

  constructor(why: Why, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "Failure";
    this.exitCode = exitCodes[why];
  }
}
