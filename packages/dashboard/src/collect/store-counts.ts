import { Latencies } from "./latencies.js";

/** Codes come from errors of any kind, so the number of different ones is capped. */
const mostCodes = 50;

/** What happened in one store since the process counts. */
export class StoreCounts {
  readonly latencies: Latencies = new Latencies();
  readonly #errors = new Map<string, number>();
  evictions = 0;

  fail(code: string): void {
    const known = this.#errors.has(code) || this.#errors.size < mostCodes ? code : "other";
    this.#errors.set(known, (this.#errors.get(known) ?? 0) + 1);
  }

  errors(): { readonly code: string; readonly count: number }[] {
    return [...this.#errors].map(([code, count]) => ({ code, count })).sort((a, b) => b.count - a.count);
  }
}
