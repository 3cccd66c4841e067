import TinyQueue from "tinyqueue";
import type { LogRequest } from "../formats/log-format.js";

const maxCharacters = 64 * 1024 * 1024;

/** What is kept of a request besides its time, address and method. What lives as long as it waits here is expensive to collect. */
export interface Kept {
  readonly targets: boolean;
  /** The whole line, for other fields. */
  readonly lines: boolean;
}

interface HeldRequest extends LogRequest {
  /** The characters of its line. */
  readonly length: number;
  /** In the order of coming. */
  readonly number: number;
}

/**
 * Sorts requests by their times, as far as a buffer of fixed size goes: servers write a line when a request ends. Requests of one time stay
 * in their order.
 */
export class ReorderBuffer {
  readonly #size: number;
  readonly #keeps: Kept;
  readonly #held = new TinyQueue<HeldRequest>([], (a, b) => a.timeMs - b.timeMs || a.number - b.number);
  #count = 0;
  #characters = 0;
  #newestMs = Number.NEGATIVE_INFINITY;

  constructor(size: number, keeps: Kept) {
    this.#size = size;
    this.#keeps = keeps;
  }

  /**
   * Adds a request. Then take the earliest ones while the buffer is full.
   * @param address its address, as a text that is shared: a part of the line would live as long as the request waits here.
   * @param length the characters of its line.
   */
  add(request: LogRequest, address: string | undefined, length: number): void {
    const { timeMs, method, format } = request;
    const target = this.#keeps.targets ? request.target : "/";
    const line = this.#keeps.lines ? request.line : undefined;
    this.#held.push({ timeMs, address, method, target, line, format, length, number: this.#count++ });
    this.#characters += length;
    this.#newestMs = Math.max(this.#newestMs, request.timeMs);
  }

  /** The latest time of all requests so far. */
  get newestMs(): number {
    return this.#newestMs;
  }

  /** Whether it holds more requests than fit, or requests of too many characters: hostile lines may be long. */
  get isFull(): boolean {
    return this.#held.length > this.#size || (this.#characters > maxCharacters && this.#held.length > 1);
  }

  /** @param untilMs leaves the requests after this time. */
  takeAll(untilMs: number = Number.POSITIVE_INFINITY): LogRequest[] {
    const taken: LogRequest[] = [];
    for (let next = this.#held.peek(); next !== undefined && next.timeMs <= untilMs; next = this.#held.peek())
      taken.push(this.take() as LogRequest);
    return taken;
  }

  take(): LogRequest | undefined {
    const request = this.#held.pop();
    this.#characters -= request?.length ?? 0;
    return request;
  }
}
