import { FloodgateError, shown } from "../support/errors.js";
import type { Promised } from "../support/promises.js";

/** Whether to refund a request, by its response status. */
export type RefundWhen = (status: number) => Promised<boolean>;

/** A function, or a list of statuses: `"5xx,404"`. */
export type RefundOption = RefundWhen | string;

/** A list of statuses: `"5xx,404"`. */
export const statusList: RegExp = /^[1-5](?:[0-9]{2}|xx)(?:\s*,\s*[1-5](?:[0-9]{2}|xx))*$/;

/** The status of a request whose client left. A `4xx` in a list is not this one: else each client could leave early and never pay. */
const clientLeft = 499;

/** @throws FloodgateError `FLOODGATE_INVALID_OPTION` if it is neither a function nor a list of statuses. */
export function refundWhen(where: string, option: unknown): RefundWhen | undefined {
  if (option === undefined || typeof option === "function") return option as RefundWhen | undefined;
  if (typeof option !== "string" || !statusList.test(option)) {
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `${where}: \`refundWhen\` must be a function or a list of statuses, but was ${shown(option)}. Write refundWhen: (status) => status >= 500, or refundWhen: "5xx".`,
      { at: ["refundWhen"] },
    );
  }
  const statuses = new Set(option.split(/\s*,\s*/));
  return (status) => statuses.has(`${status}`) || (status !== clientLeft && statuses.has(`${Math.floor(status / 100)}xx`));
}
