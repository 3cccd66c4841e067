import { ipKey } from "@floodgate/core/rules";
import type { LogRequest } from "../formats/log-format.js";
import { Copies } from "./copies.js";

/** The longest host name. */
const longestName = 255;

/**
 * The addresses of clients. Some logs have host names, or addresses that were made anonymous, where an address should be. Rules count by
 * addresses, so each of these gets one of its own, from a range that no client has (240.0.0.0/4).
 */
export class Clients {
  readonly #copies = new Copies();
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
    if (text === undefined || text.length > longestName) return undefined;
    const address = this.#copies.of(text);
    return ipKey(address, 128) === undefined ? this.#standIn(address) : address;
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
