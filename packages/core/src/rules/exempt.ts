import { encodeKey, type Key } from "../limits/key.js";
import { atPath, invalidOption, shown } from "../support/errors.js";
import { contains, type IpRange, parseCidr, parseIp } from "../support/ip.js";
import { checkOptions } from "../support/options.js";

/** Clients and keys that are not counted. */
export interface Exempt {
  /** Client addresses and CIDR ranges: `"10.0.0.0/8"`. */
  readonly ips?: readonly string[];
  /** Keys, as the rule's `key` makes them. A secret key is given as itself or as its digest (`"secret:..."`). */
  readonly keys?: readonly Key[];
}

export interface CompiledExempt {
  readonly ranges: readonly IpRange[];
  readonly keys: readonly Key[];
}

/**
 * @returns a list of one; empty if `exempt` is undefined.
 * @throws FloodgateError if a range or a key is invalid.
 */
export function compileExempt(where: string, exempt: Exempt | undefined): readonly CompiledExempt[] {
  if (exempt === undefined) return [];
  return atPath(["exempt"], () => {
    checkOptions(`${where}: exempt`, exempt, ["ips", "keys"], 'exempt: { ips: ["10.0.0.0/8"] }');
    const ranges = list(where, "ips", exempt.ips).map((text, i) => atPath(["ips", i], () => range(where, text)));
    const keys = list(where, "keys", exempt.keys) as readonly Key[];
    for (const [i, key] of keys.entries()) atPath(["keys", i], () => encodeKey(key));
    return [{ ranges, keys }];
  });
}

/** Whether a client's address is in one of these ranges. */
export function isInRanges(ranges: readonly IpRange[], text: string): boolean {
  const address = parseIp(text);
  return address !== undefined && ranges.some((range) => contains(range, address));
}

function list(where: string, option: "ips" | "keys", value: unknown): readonly unknown[] {
  if (value === undefined) return [];
  if (Array.isArray(value)) return value;
  const isText = typeof value === "string";
  // A key may be a secret, so it is not shown.
  const given = isText && option === "keys" ? "a string" : shown(value);
  const example = isText && option === "ips" ? shown(value) : "...";
  throw invalidOption(`${where}: \`exempt.${option}\` must be an array, but was ${given}. Write exempt: { ${option}: [${example}] }.`, [
    option,
  ]);
}

function range(where: string, text: unknown): IpRange {
  const parsed = typeof text === "string" ? parseCidr(text) : undefined;
  if (parsed !== undefined) return parsed;
  throw invalidOption(
    `${where}: \`exempt.ips\` must be a list of IP addresses and ranges, but one was ${shown(text)}. Write exempt: { ips: ["10.0.0.0/8"] }.`,
  );
}
