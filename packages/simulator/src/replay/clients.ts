import { ipKey } from "@floodgate/core/rules";
import type { LogRequest } from "../formats/log-format.js";

const longestName = 255;
/** How many texts are remembered before all are forgotten. */
const remembered = 1 << 17;

/**
 * The addresses of clients. Some logs have host names, or addresses that were made anonymous, where an address should be. Rules count by
 * addresses, so each of these gets one of its own, from a range that no client has (240.0.0.0/4).
 */
export class Clients {
  /** The addresses of texts that were read before. */
  #known = new Map<string, string>();
  readonly #names = new Map<string, string>();
  readonly #byAddress = new Map<string, string>();
  readonly #maxNames: number;

  constructor(maxNames: number) {
    this.#maxNames = maxNames;
  }

  /** How many clients have a name instead of an address. */
  get named(): number {
    return this.#names.size;
  }

  addressOf({ address: text }: LogRequest): string | undefined {
    if (text === undefined) return undefined;
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const address = text.length > longestName ? undefined : ipKey(text, 128) === undefined ? this.#standIn(text) : text;
    if (address !== undefined) {
      if (this.#known.size >= remembered) this.#known = new Map();
      this.#known.set(text, address);
    }
    return address;
  }

  /** The name that an address stands for, or the address itself. Works on keys that hold addresses, too. */
  shown(key: string): string {
    if (this.#names.size === 0) return key;
    return key.replace(/24\d\.\d+\.\d+\.\d+|25[0-5]\.\d+\.\d+\.\d+/g, (address) => this.#byAddress.get(address) ?? address);
  }

  #standIn(name: string): string | undefined {
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    const number = this.#names.size;
    if (number >= this.#maxNames) return undefined;
    const address = [240 + (number >>> 24), number >>> 16, number >>> 8, number].map((byte, i) => (i === 0 ? byte : byte & 255)).join(".");
    this.#names.set(name, address);
    this.#byAddress.set(address, name);
    return address;
  }
}
