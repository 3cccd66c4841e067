import { KeyIndex } from "../measure/key-index.js";

/** The largest value of each client in several columns. */
export class Peaks {
  readonly #keys: KeyIndex;
  readonly #columns: Float64Array[];

  constructor(columns: number, maxClients: number) {
    this.#keys = new KeyIndex(maxClients);
    this.#columns = Array.from({ length: columns }, () => new Float64Array(64));
  }

  get clients(): number {
    return this.#keys.size;
  }

  /** The number of a client; -1 if there are too many others. */
  clientOf(key: string): number {
    return this.#keys.of(key);
  }

  see(client: number, column: number, value: number): void {
    let values = this.#columns[column] as Float64Array;
    if (client >= values.length) {
      const larger = new Float64Array(2 * Math.max(client, values.length));
      larger.set(values);
      this.#columns[column] = values = larger;
    }
    if (value > (values[client] as number)) values[client] = value;
  }

  /** The values of all clients in a column, the largest first. */
  descending(column: number): Float64Array {
    const values = new Float64Array(this.clients);
    values.set((this.#columns[column] as Float64Array).subarray(0, this.clients));
    return values.sort().reverse();
  }
}
