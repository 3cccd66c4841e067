import type { AlgorithmArguments } from "./algorithms.js";
import { type LeanLimit, leanScript, type Script } from "./script.js";

/** A limit of a request with its key. */
export interface LeanCheck {
  readonly known: { readonly policy: AlgorithmArguments; readonly lean: (LeanLimit & { readonly id: string }) | undefined };
  readonly redisKey: string;
  readonly cost: number;
}

/** A request alone, and the script that decides it. */
export interface LeanRequest {
  readonly script: Script;
  readonly checks: readonly LeanCheck[];
}

/** The most scripts: Redis keeps each of them. Requests under other policies take the general script. */
const maxScripts = 200;
/** The most limits of a request. A Lua function has room for some more. */
const maxLimits = 6;

/** The scripts of requests that travel alone: one for each policy, and one for each combination of policies. */
export class LeanScripts {
  readonly #scripts = new Map<string, Script>();
  readonly #wantsState: boolean;

  /** @param wantsState whether rejections return their state. */
  constructor(wantsState: boolean) {
    this.#wantsState = wantsState;
  }

  /** @param isWhole whether it is a consumeAll. */
  request(checks: readonly LeanCheck[], isWhole: boolean): LeanRequest | undefined {
    let id = isWhole ? "all " : "";
    for (const { known } of checks) {
      if (known.lean === undefined) return undefined;
      id += known.lean.id;
    }
    const script = this.#scripts.get(id) ?? this.#add(id, checks, isWhole);
    return script && { script, checks };
  }

  #add(id: string, checks: readonly LeanCheck[], isWhole: boolean): Script | undefined {
    if (this.#scripts.size === maxScripts || checks.length > maxLimits) return undefined;
    const limits = checks.map(({ known }) => known.lean as LeanLimit);
    const script = leanScript(limits, isWhole, this.#wantsState);
    this.#scripts.set(id, script);
    return script;
  }
}
