/** A number for each client, which is 0 until it is set. In a flat array that grows, because there may be millions of clients. */
export class Numbers {
  #values: Float64Array = new Float64Array(64);

  get(client: number): number {
    return this.#values[client] ?? 0;
  }

  set(client: number, value: number): void {
    while (client >= this.#values.length) this.#values = doubled(this.#values);
    this.#values[client] = value;
  }

  add(client: number, more: number): void {
    this.set(client, this.get(client) + more);
  }

  raise(client: number, least: number): void {
    if (least > this.get(client)) this.set(client, least);
  }

  /** The numbers of the first `count` clients. */
  first(count: number): Float64Array {
    return Float64Array.from({ length: count }, (_, client) => this.get(client));
  }
}

/** A copy with room for twice as many numbers, and for `least`. */
export function doubled(values: Float64Array, least = 0): Float64Array {
  const larger = new Float64Array(Math.max(least, 2 * values.length));
  larger.set(values);
  return larger;
}
