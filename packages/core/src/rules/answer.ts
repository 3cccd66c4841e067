import { FloodgateError, shown } from "../support/errors.js";

/**
 * What a yes-or-no function of the app has answered. Nothing means no.
 * @throws FloodgateError `FLOODGATE_INVALID_ANSWER` for anything else: `"false"` or `0` could mean either.
 */
export function yesOrNo(where: string, option: string, answer: unknown, example: string): boolean {
  if (typeof answer === "boolean") return answer;
  if (answer === undefined || answer === null) return false;
  throw new FloodgateError(
    "FLOODGATE_INVALID_ANSWER",
    `${where}: \`${option}\` must answer true or false, but answered ${shown(answer)}. Write ${option}: ${example}.`,
    { at: [option] },
  );
}
