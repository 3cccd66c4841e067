import type { Decision } from "@floodgate/core";
import { KeyIndex } from "../measure/key-index.js";
import { doubled } from "../support/min-heap.js";

/** The largest value of each client in several columns. */
export class Peaks {
  /** The numbers of the clients. */
  readonly keys: KeyIndex;
  readonly #columns: Float64Array[];

  constructor(columns: number, maxClients: number) {
    this.keys = new KeyIndex(maxClients);
    this.#columns = Array.from({ length: columns }, () => new Float64Array(64));
  }

  see(client: number, column: number, value: number): void {
    const known = this.#columns[column] as Float64Array;
    const values = client < known.length ? known : doubled(known, 2 * client);
    this.#columns[column] = values;
    if (value > (values[client] as number)) values[client] = value;
  }

  of(client: number, column: number): number {
    return (this.#columns[column] as Float64Array)[client] as number;
  }

  /** The values of all clients in a column, the largest first. */
  descending(column: number): Float64Array {
    return (this.#columns[column] as Float64Array).slice(0, this.keys.size).sort().reverse();
  }
}

/** The units of its limit that a client has used; more than the limit if it was rejected. */
export function usedOf({ allowed, limit, remaining }: Decision): number {
  return allowed ? limit - remaining : limit + 1;
}
