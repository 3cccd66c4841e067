import type { Clock } from "@floodgate/core/store";
import type { AlgorithmArguments } from "./algorithms.js";
import type { Run } from "./clients/client.js";
import { sha, source } from "./script.js";
import type { Step } from "./steps.js";

/** Steps that travel together, in one run of the script. The arguments are told in lua/prelude.lua and lua/batch.lua. */
export class Batch {
  readonly steps: readonly Step[];
  readonly keys: string[] = [];
  /** Of the steps. */
  readonly args: string[] = [];
  /** The time that was handed over; undefined where the server's own counts. */
  readonly nowMs: number | undefined;
  readonly #head: string[];
  readonly #policies: AlgorithmArguments[] = [];
  /** The latest step that may stand for several, how often it does, and where it ends. */
  #run: { readonly args: readonly string[]; readonly end: number; count: number } = { args: [], count: 0, end: -1 };

  /** @param notAfterMs by the server's clock, from when on this batch must do nothing. */
  constructor(steps: readonly Step[], clock: Clock | undefined, notAfterMs: number, wantsState: boolean) {
    this.steps = steps;
    this.nowMs = clock?.();
    for (const step of steps) {
      step.firstKey = this.keys.length + 1;
      step.write(this);
    }
    this.#head = [
      this.nowMs === undefined ? "" : String(this.nowMs),
      String(notAfterMs),
      wantsState ? "1" : "0",
      String(this.#policies.length),
    ];
    for (const { number, parameters } of this.#policies) this.#head.push(String(number), ...parameters);
  }

  /** Writes a step that may stand for several in a row, each of the next keys. */
  repeat(...args: string[]): void {
    const { args: latest, end } = this.#run;
    if (end === this.args.length && latest.length === args.length && latest.every((arg, i) => arg === args[i])) {
      this.#run.count++;
      this.args[end - 1] = String(this.#run.count);
    } else {
      this.#run = { args, count: 1, end: this.args.push(...args, "1") };
    }
  }

  /** The number of a policy in this batch: each is sent once. A batch knows few, so they are looked through. */
  policy(policy: AlgorithmArguments): string {
    let index = this.#policies.indexOf(policy);
    if (index < 0) index = this.#policies.push(policy) - 1;
    return String(index + 1);
  }

  run(command: Run["command"]): Run {
    const script = command === "EVALSHA" ? sha : source;
    const args = [script, String(this.keys.length), ...this.keys, ...this.#head, ...this.args];
    return { command, args, firstKey: this.keys[0] as string };
  }
}
