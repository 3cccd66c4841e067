import { encodeKey, type Key } from "../limits/key.js";
import { FloodgateError, inside, shown } from "../support/errors.js";
import { contains, type IpRange, parseCidr, parseIp } from "../support/ip.js";
import { checkOptions } from "../support/options.js";

/** Who is not counted. */
export interface Exempt {
  /** Client addresses and ranges: `"10.0.0.0/8"`. */
  readonly ips?: readonly string[];
  /** Keys, as the rule's own `key` makes them; a secret key itself, or its digest (`"secret:..."`). */
  readonly keys?: readonly Key[];
}

/** What one place says of who is exempt, made ready. */
export interface Exempted {
  readonly ranges: readonly IpRange[];
  readonly keys: readonly Key[];
}

/**
 * @returns a list of one, or of none where nobody is exempt.
 * @throws FloodgateError if a range or a key is invalid.
 */
export function compileExempt(where: string, exempt: Exempt | undefined): readonly Exempted[] {
  if (exempt === undefined) return [];
  return inside(["exempt"], () => {
    checkOptions(`${where}: exempt`, exempt, ["ips", "keys"], 'exempt: { ips: ["10.0.0.0/8"] }');
    const ranges = list(where, "ips", exempt.ips).map((text, i) => inside(["ips", i], () => range(where, text)));
    const keys = list(where, "keys", exempt.keys).map((key, i) => inside(["keys", i], () => sound(key as Key)));
    return [{ ranges, keys }];
  });
}

/** @throws FloodgateError `FLOODGATE_INVALID_KEY` if the key is invalid. */
function sound(key: Key): Key {
  encodeKey(key);
  return key;
}

/** Everybody whom a rule does not count, wherever that is said. */
export class Exemptions {
  readonly #ranges: readonly IpRange[];
  readonly #keys: ReadonlySet<string>;

  private constructor(all: readonly Exempted[], textOf: (key: Key) => string | undefined) {
    this.#ranges = all.flatMap(({ ranges }) => ranges);
    const texts = all.flatMap(({ keys }) => keys).map(textOf);
    this.#keys = new Set(texts.filter((text) => text !== undefined));
  }

  /**
   * Undefined where nobody is exempt.
   * @param textOf the text under which the rule counts a key; undefined if the rule makes no such key.
   */
  static of(all: readonly Exempted[], textOf: (key: Key) => string | undefined): Exemptions | undefined {
    return all.length === 0 ? undefined : new Exemptions(all, textOf);
  }

  /** Whether an address must be known to tell. */
  get hasRanges(): boolean {
    return this.#ranges.length > 0;
  }

  hasAddress(text: string): boolean {
    const address = parseIp(text);
    return address !== undefined && this.#ranges.some((one) => contains(one, address));
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
  const given = isText && option === "keys" ? "a text" : shown(value);
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
    `${where}: \`exempt.ips\` holds addresses and ranges, but one was ${shown(text)}. Write exempt: { ips: ["10.0.0.0/8"] }.`,
  );
}
