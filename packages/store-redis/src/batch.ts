import type { Clock } from "@floodgate/core/store";
import type { AlgorithmArguments } from "./algorithms.js";
import type { Run } from "./clients/client.js";
import { general, leanScript } from "./script.js";

/** A step that writes its keys and arguments to a batch. */
interface Writing {
  /** The index of its first key in the batch, from 1. */
  firstKey: number;
  write(batch: Batch): void;
}

/** Steps that one run of a script executes. lua/prelude.lua, lua/batch.lua and lua/lean.lua describe the arguments. */
export class Batch<Step extends Writing = Writing> {
  readonly steps: readonly Step[];
  readonly keys: string[] = [];
  /** The key of the block for each of the keys. */
  readonly #blocks: string[] = [];
  readonly #isCluster: boolean;
  /** The arguments of the steps. */
  readonly args: string[] = [];
  /** The injected clock's time; undefined if the server's time is used. */
  readonly nowMs: number | undefined;
  /** Without the arguments that are only in the general script. */
  readonly #head: readonly string[];
  readonly #policies: AlgorithmArguments[] = [];
  /** The algorithm's number of a consume that is alone. Its script is lean. */
  #lean: number | undefined;
  /** The last repeatable step: its arguments, its repetitions, and the index after it. */
  #run: { readonly args: readonly string[]; readonly end: number; count: number } = { args: [], count: 0, end: -1 };

  /** @param notAfterMs the server time past which the script does nothing. */
  constructor(steps: readonly Step[], clock: Clock | undefined, notAfterMs: number, wantsState: boolean, isCluster: boolean) {
    this.steps = steps;
    this.#isCluster = isCluster;
    this.nowMs = clock?.();
    for (const step of steps) {
      step.firstKey = this.keys.length + 1;
      step.write(this);
    }
    this.#head = [this.nowMs === undefined ? "" : String(this.nowMs), String(notAfterMs), wantsState ? "1" : "0"];
  }

  /** Writes a key, and the key of its block. The script reads all blocks: the key itself may be a long log. */
  key(redisKey: string, blockKey: string = redisKey.replace(/:[^:]*$/, ":blocks")): void {
    this.keys.push(redisKey);
    this.#blocks.push(blockKey);
  }

  /** Writes a step that consumes units of the key that was written last. */
  consume(policy: AlgorithmArguments, cost: number): void {
    if (this.steps.length === 1) {
      this.#lean = policy.number;
      this.args.push(String(cost), ...policy.parameters);
    } else if (cost === 1) {
      this.repeat(this.policy(policy));
    } else {
      this.args.push("c", this.policy(policy), String(cost));
    }
  }

  /** Writes a repeatable step. Equal steps in a row are written once with a count. */
  repeat(...args: string[]): void {
    const { args: latest, end } = this.#run;
    if (end === this.args.length && latest.length === args.length && latest.every((arg, i) => arg === args[i])) {
      this.#run.count++;
      this.args[end - 1] = String(this.#run.count);
    } else {
      this.#run = { args, count: 1, end: this.args.push(...args, "1") };
    }
  }

  /** The index of a policy in this batch, from 1; each is sent once. Linear search, because a batch has few policies. */
  policy(policy: AlgorithmArguments): string {
    let index = this.#policies.indexOf(policy);
    if (index < 0) index = this.#policies.push(policy) - 1;
    return String(index + 1);
  }

  /** Whether it is a consume alone. */
  get isLean(): boolean {
    return this.#lean !== undefined;
  }

  run(command: Run["command"]): Run {
    const { source, sha } = this.#lean === undefined ? general : leanScript(this.#lean);
    // On a Cluster the script derives the names: a script with several keys fails while their slot moves to another node.
    const keys = this.#isCluster ? this.keys : [...this.keys, ...this.#blocks];
    const args = [command === "EVALSHA" ? sha : source, String(keys.length), ...keys, ...this.#head];
    if (this.#lean === undefined) {
      args.push(String(this.keys.length), String(this.#policies.length));
      for (const { number, parameters } of this.#policies) args.push(String(number), ...parameters);
    }
    args.push(...this.args);
    return { command, args, firstKey: keys[0] as string };
  }
}
