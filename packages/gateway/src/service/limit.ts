import type { Limiter, RuleSource, Store } from "@floodgate/core";
import {
  checkNamed,
  type NamedCheck,
  type NamedDecisions,
  type Outcome,
  type Promised,
  RateLimit,
  type RateLimitOptions,
  type RequestReader,
  reducedCapacity,
  unlimited,
} from "@floodgate/core/adapter";
import type { CompiledRule, RuleSet } from "@floodgate/core/rules";
import { type DescriptorsOutcome, decideDescriptors, undecided } from "./descriptors.js";
import type { GatewayRequest } from "./request.js";

const unavailable: Outcome = {
  ...unlimited,
  action: "reject",
  headers: [
    { name: "Retry-After", value: "1" },
    { name: "Cache-Control", value: "no-store" },
  ],
  status: 503,
  body: reducedCapacity([], 1),
};

/** What core advises to write in JavaScript, and what to write here. */
const advice: readonly (readonly [RegExp, string])[] = [
  [/ Define your own names in `keys`: keys: \{ (\w+): .*$/gm, " Define your own names by flags: --key $1=header:x-$1."],
  [/ Define your own names in `keys`.*$/gm, " Define your own names by flags: --key user=header:x-user."],
  [/ Write plan: \(req\) => .*$/gm, " Say where the name of a plan comes from: --plan header:x-plan."],
  [
    /(`settle` names .*), which `costs` does not define\. .*$/gm,
    "$1, but only an app can define such a name. In floodgate gateway, name a header of the upstream's response: settle: header:x-cost.",
  ],
  [/, which `costs` does not define\. .*$/gm, ", but only an app can define such a name. Write a number. Or let the app ask the JSON API."],
  [/floodgate: `keys` cannot/g, "--key cannot"],
  [/: floodgate: rules\[/g, ": rules["],
];

/** A message of core in the words of the settings. */
export function inOwnWords(message: string): string {
  return advice.reduce((text, [words, own]) => text.replace(words, own), message);
}

/** Refuses rules by throwing a FloodgateError with the path of the rule in `at`. */
export type RulesCheck = (rules: RuleSet) => void;

/** The options of a `RateLimit`, but for its rules. */
export type PendingOptions = Omit<RateLimitOptions<GatewayRequest, string>, "rules"> & { readonly store: Store };

/** A `RateLimit` whose rules may still be missing. Until they arrive, each request is decided as `onStoreError` says. */
export class PendingLimit {
  readonly #options: PendingOptions;
  readonly #reader: RequestReader<GatewayRequest>;
  #limit: RateLimit<GatewayRequest> | undefined;
  #leave: () => void = () => undefined;

  constructor(options: PendingOptions, reader: RequestReader<GatewayRequest>) {
    this.#options = options;
    this.#reader = reader;
  }

  /**
   * @param check refuses rules, at once and in each new version.
   * @throws FloodgateError if the rules use a name that the settings do not define, or something else in them is wrong.
   */
  start(rules: RuleSource, check: RulesCheck): void {
    try {
      check(rules.current);
    } catch (error) {
      throw rules.explain?.(error) ?? error;
    }
    const prepare = (set: RuleSet): (() => void) => {
      check(set);
      return () => undefined;
    };
    this.#limit = new RateLimit("floodgate", { ...this.#options, rules }, [], this.#reader, () => this.#options.store);
    this.#leave = rules.subscribe({ prepare });
  }

  decide(request: GatewayRequest): Promised<Outcome> {
    if (this.#limit !== undefined) return this.#limit.decide(request);
    return this.#undecided;
  }

  check(named: readonly NamedCheck[]): Promised<NamedDecisions> {
    if (this.#limit !== undefined) return checkNamed(this.#limit, named);
    const nothing = named.map(() => undefined);
    return { allowed: this.#undecided.action === "pass", decision: undefined, checks: nothing, decisions: nothing };
  }

  async decideDescriptors(requests: readonly GatewayRequest[]): Promise<DescriptorsOutcome> {
    if (this.#limit !== undefined) return decideDescriptors(this.#limit, requests);
    return undecided(this.#undecided, requests.length);
  }

  /** What becomes of a request while there are no rules. */
  get #undecided(): Outcome {
    return this.#options.onStoreError === "deny" ? unavailable : unlimited;
  }

  get rules(): readonly CompiledRule<GatewayRequest>[] {
    return this.#limit?.version.rules.all ?? [];
  }

  get limiters(): ReadonlyMap<string, Limiter> {
    return this.#limit?.version.limiters ?? new Map();
  }

  close(): void {
    this.#leave();
    this.#limit?.close();
  }
}
