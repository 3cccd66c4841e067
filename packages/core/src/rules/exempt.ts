import { encodeKey, type Key } from "../limits/key.js";
import { FloodgateError, inside, shown } from "../support/errors.js";
import { contains, type IpRange, parseCidr, parseIp } from "../support/ip.js";
import { checkOptions } from "../support/options.js";

/** Clients and keys that are not counted. */
export interface Exempt {
  /** Client addresses and CIDR ranges: `"10.0.0.0/8"`. */
  readonly ips?: readonly string[];
  /** Keys, as the rule's `key` makes them. A secret key is given as itself or as its digest (`"secret:..."`). */
  readonly keys?: readonly Key[];
}

/** A compiled `exempt` option. */
export interface Exempted {
  readonly ranges: readonly IpRange[];
  readonly keys: readonly Key[];
}

/**
 * @returns a list of one; empty if `exempt` is undefined.
 * @throws FloodgateError if a range or a key is invalid.
 */
export function compileExempt(where: string, exempt: Exempt | undefined): readonly Exempted[] {
  if (exempt === undefined) return [];
  return inside(["exempt"], () => {
    checkOptions(`${where}: exempt`, exempt, ["ips", "keys"], 'exempt: { ips: ["10.0.0.0/8"] }');
    const ranges = list(where, "ips", exempt.ips).map((text, i) => inside(["ips", i], () => range(where, text)));
    const keys = list(where, "keys", exempt.keys).map((key, i) => inside(["keys", i], () => validKey(key as Key)));
    return [{ ranges, keys }];
  });
}

/** @throws FloodgateError `FLOODGATE_INVALID_KEY` if the key is invalid. */
function validKey(key: Key): Key {
  encodeKey(key);
  return key;
}

/** All exemptions of one rule: its own, and those of all rules. */
export class Exemptions {
  readonly #ranges: readonly IpRange[];
  readonly #keys: ReadonlySet<string>;

  private constructor(all: readonly Exempted[], textOf: (key: Key) => string | undefined) {
    this.#ranges = all.flatMap(({ ranges }) => ranges);
    const texts = all.flatMap(({ keys }) => keys).map(textOf);
    this.#keys = new Set(texts.filter((text) => text !== undefined));
  }

  /**
   * Combines exemptions. Returns undefined for an empty list.
   * @param textOf returns the text under which the rule counts a key; undefined if the rule makes no such key.
   */
  static of(all: readonly Exempted[], textOf: (key: Key) => string | undefined): Exemptions | undefined {
    return all.length === 0 ? undefined : new Exemptions(all, textOf);
  }

  /** Whether the client's address is needed. */
  get hasRanges(): boolean {
    return this.#ranges.length > 0;
  }

  hasAddress(text: string): boolean {
    const address = parseIp(text);
    return address !== undefined && this.#ranges.some((range) => contains(range, address));
  }

  hasKey(key: string): boolean {
    return this.#keys.has(key);
  }
}

function list(where: string, option: "ips" | "keys", value: unknown): readonly unknown[] {
  if (value === undefined) return [];
  if (Array.isArray(value)) return value;
  const isText = typeof value === "string";
  // A key may be a secret, so it is not shown.
  const given = isText && option === "keys" ? "a string" : shown(value);
  const example = isText && option === "ips" ? shown(value) : "...";
  throw new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    `${where}: \`exempt.${option}\` must be an array, but was ${given}. Write exempt: { ${option}: [${example}] }.`,
    { at: [option] },
  );
}

function range(where: string, text: unknown): IpRange {
  const parsed = typeof text === "string" ? parseCidr(text) : undefined;
  if (parsed !== undefined) return parsed;
  throw new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    `${where}: \`exempt.ips\` must be a list of IP addresses and ranges, but one was ${shown(text)}. Write exempt: { ips: ["10.0.0.0/8"] }.`,
  );
}
