import type { Clock } from "@floodgate/core/store";
import type { AlgorithmArguments } from "./algorithms.js";
import type { Run } from "./clients/client.js";
import { heldKey } from "./keys.js";
import type { LeanRequest } from "./lean.js";
import { general } from "./script.js";

/** A step that writes its keys and arguments to a batch. */
interface Writing {
  readonly redisKey: string;
  /** The index of its first key in the batch, from 1. */
  firstKey: number;
  /** How it is sent alone, if a script of its own decides it; then it is not written. */
  readonly lean: LeanRequest | undefined;
  write(batch: GeneralBatch): void;
}

/** Steps that one run of a script executes. lua/prelude.lua, lua/batch.lua and lua/lean.lua describe the arguments. */
export interface Batch<Step = Writing> {
  readonly steps: readonly Step[];
  /** The injected clock's time; undefined if the server's time is used. */
  readonly nowMs: number | undefined;
  run(command: Run["command"]): Run;
}

/** What all batches of a queue are sent with. */
export interface QueueOptions {
  readonly clock: Clock | undefined;
  /** Whether rejections return their state. */
  readonly wantsState: boolean;
}

interface BatchOptions extends QueueOptions {
  /** The server time past which the script does nothing. */
  readonly notAfterMs: number;
  /** About the server's time. The windows of calendars that are sent are those around it. */
  readonly serverMs: number;
  /** The length of the last part of all keys, if their states are read ahead: see lua/batch.lua. */
  readonly kindSize?: number | undefined;
}

export function batchOf<Step extends Writing>(steps: readonly Step[], options: BatchOptions): Batch<Step> {
  const nowMs = options.clock?.();
  const [first] = steps as readonly [Step];
  const lean = steps.length === 1 ? first.lean : undefined;
  if (lean === undefined) return new GeneralBatch(steps, nowMs, options);
  first.firstKey = 1;
  return { steps, nowMs, run: (command) => leanRun(command, lean, nowMs, options) };
}

/** The run of a request alone. */
function leanRun(
  command: Run["command"],
  { script, checks }: LeanRequest,
  nowMs: number | undefined,
  { notAfterMs, serverMs }: BatchOptions,
): Run {
  const args = [command === "EVALSHA" ? script.sha : script.source, String(checks.length)];
  let takesOne = true;
  for (const { redisKey, cost, known } of checks) {
    args.push(redisKey);
    takesOne &&= cost === 1 && known.policy.edgesAt === undefined;
  }
  args.push(String(notAfterMs));
  if (nowMs !== undefined || !takesOne) args.push(String(nowMs ?? ""));
  if (!takesOne) {
    for (const { cost } of checks) args.push(String(cost));
    for (const { known } of checks) args.push(...(known.policy.edgesAt?.(nowMs ?? serverMs) ?? []));
  }
  return { command, args, firstKey: args[2] as string };
}

/** Steps that write themselves. */
export class GeneralBatch<Step extends Writing = Writing> implements Batch<Step> {
  readonly steps: readonly Step[];
  readonly nowMs: number | undefined;
  /** Of the states; of a block for steps that concern nothing else. The script derives the names of the other blocks. */
  readonly keys: string[] = [];
  /** Keys beside these, whose names the script derives. A Cluster must know them all while their slot moves. */
  readonly others: string[] = [];
  /** The arguments of the steps. */
  readonly args: string[] = [];
  readonly #options: BatchOptions;
  readonly #policies: AlgorithmArguments[] = [];
  /** The last repeatable step: its arguments, its repetitions, and the index after it. */
  #run: { readonly args: readonly string[]; readonly end: number; count: number } = { args: [], count: 0, end: -1 };

  constructor(steps: readonly Step[], nowMs: number | undefined, options: BatchOptions) {
    this.steps = steps;
    this.nowMs = nowMs;
    this.#options = options;
    for (const step of steps) {
      step.firstKey = this.keys.length + 1;
      step.write(this);
    }
  }

  /** Writes the key of a state, and that of the units that are held. */
  state(redisKey: string, { holds }: AlgorithmArguments): void {
    this.keys.push(redisKey);
    if (holds.length > 0) this.others.push(heldKey(redisKey));
  }

  /** Writes a step that consumes units of the key that was written last. */
  consume(policy: AlgorithmArguments, cost: number): void {
    if (cost === 1) this.repeat(this.policy(policy));
    else this.args.push("c", this.policy(policy), String(cost));
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

  run(command: Run["command"]): Run {
    const keys = [...this.keys, ...this.others];
    const args = [command === "EVALSHA" ? general.sha : general.source, String(keys.length), ...keys];
    const { notAfterMs, serverMs, wantsState, kindSize = "" } = this.#options;
    args.push(String(notAfterMs), String(this.nowMs ?? ""), wantsState ? "1" : "0", String(kindSize));
    args.push(String(this.#policies.length));
    for (const { number, parameters, holds, edgesAt } of this.#policies) {
      args.push(...holds, String(number), ...parameters, ...(edgesAt?.(this.nowMs ?? serverMs) ?? []));
    }
    args.push(...this.args);
    return { command, args, firstKey: this.keys[0] as string };
  }
}
