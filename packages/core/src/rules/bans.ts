import { slidingWindowLog } from "../algorithms/sliding-window-log.js";
import { blockedDecision } from "../decide/blocks.js";
import { type Check, type CombinedDecision, combine, createLimit, type Decision, type Limit } from "../decide/decision.js";
import type { Guard } from "../decide/guard.js";
import type { Blocked } from "../decide/store.js";
import { decideWithZeros, isZero } from "../decide/zero-limits.js";
import { activeListener } from "../events/listeners.js";
import { atMost, msUntil, unblockedMs } from "../failure/deadlines.js";
import type { StoreClient } from "../limits/limiter.js";
import { type Duration, durationOption, durationText } from "../support/duration.js";
import { atPath } from "../support/errors.js";
import { getOrMake, NewestMap } from "../support/maps.js";
import { checkOptions, wholeNumber } from "../support/options.js";
import { allOf, andThen, attempt, isPromise, type Promised, runInBackground } from "../support/promises.js";
import { steadyMs } from "../support/runtime.js";

/** Bans a key for a while after repeated rejections. */
export interface BanOptions {
  /** The number of rejections that starts a ban. */
  readonly after: number;
  /** The time in which rejections are counted. */
  readonly within: Duration;
  /** How long the key is banned. Requests during the ban do not extend it. */
  readonly for: Duration;
}

/** What this process knows of a key's rejections. */
interface Known {
  /** The rejections left until a ban, from the store's last answer; 0 if unknown. */
  left: number;
  /** Whether the last two answers show that no other process counts this key. If not, `left` may be outdated. */
  alone: boolean;
  atMs: number;
  /** Rejections that are on their way to the store. */
  pending: number;
}

/** Far more keys than are rejected at once. A key that is not remembered costs a round trip. */
const keptKeys = 10_000;

/** After this time, other processes may have counted. */
const knownForMs = 1000;

/**
 * Counts the rejections of a key in the store, like any other limit, and blocks the key there when there are too many. The store turns a
 * banned key away in the step that checks the limit. Rejections by a deny cache are counted too; those by a ban or a block are not.
 */
export class Ban {
  readonly rejections: Limit;
  readonly forMs: number;
  readonly #name: string;
  readonly #known = new NewestMap<Known>(keptKeys);

  /** @throws FloodgateError if a number or a duration is invalid. */
  constructor(where: string, name: string, options: BanOptions) {
    const place = `${where}: ban`;
    const { after, within, forMs } = atPath(["ban"], () => {
      checkOptions(place, options, ["after", "within", "for"], 'ban: { after: 10, within: "1m", for: "1h" }');
      return {
        after: wholeNumber(place, "after", options.after, 1, 10),
        within: durationOption(place, "within", options.within),
        forMs: durationOption(place, "for", options.for),
      };
    });
    this.forMs = forMs;
    this.#name = name;
    // Names of rules are ASCII, so no rule has this name.
    this.rejections = createLimit(`${name}·rejections`, slidingWindowLog({ limit: after, window: durationText(within) }));
  }

  /** Whether the next rejection of a key may start a ban, so that it must wait for the store. False only if it certainly does not. */
  mayBegin(key: string): boolean {
    const known = this.#known.get(key);
    if (known === undefined || steadyMs() - known.atMs > knownForMs) return true;
    return !known.alone || known.left - known.pending <= 1;
  }

  /** Counts a rejection. Returns the ban if there is one now: of several processes that count the last rejection, one starts it. */
  count(guard: Guard, key: string): Promised<Blocked | undefined> {
    // A store in this process answers at once, so nothing needs to be known.
    if (guard.mode !== "sync") getOrMake(this.#known, key, () => ({ left: 0, alone: false, atMs: steadyMs(), pending: 0 })).pending++;
    return andThen<Decision, Blocked | undefined>(guard.consume(this.rejections, key, 1), (counted) => {
      const left = counted.allowed ? counted.remaining : 0;
      // During an outage no ban starts. The next rejection starts it.
      if (!counted.degraded && left === 0) return guard.block(this.#name, key, this.forMs, "ban");
      this.learn(key, counted.degraded ? 0 : left);
      return undefined;
    });
  }

  /** Learns the end of a rejection's count. Call it once for each. @param left how many more rejections start a ban; 0 if unknown. */
  learn(key: string, left: number): void {
    const known = this.#known.get(key);
    if (known === undefined) return;
    known.pending--;
    known.alone = known.left - left === 1;
    known.left = left;
    known.atMs = steadyMs();
    this.#known.set(key, known);
  }
}

interface BanCheck extends Check {
  readonly rule: { readonly name: string; readonly shadow: boolean; readonly ban: Ban | undefined };
}

/**
 * Decides checks, and counts the rejections of rules with a ban, except rejections by a ban or a block. Only a rejection that may begin a
 * ban waits for the store, within the timeout of the whole decision.
 * @param mayBeZero whether a limit may be 0.
 */
export function decideWithBans(checks: readonly BanCheck[], client: StoreClient, mayBeZero: boolean): Promised<CombinedDecision> {
  const { guard } = client;
  const deadlineMs = guard.mode === "sync" ? 0 : unblockedMs() + guard.timeoutMs;
  const decided = mayBeZero ? decideWithZeros(checks, guard) : guard.decide(checks);
  return "then" in decided
    ? decided.then((whole) => countRejections(checks, whole, client, deadlineMs))
    : countRejections(checks, decided, client, deadlineMs);
}

function countRejections(
  checks: readonly BanCheck[],
  whole: CombinedDecision,
  client: StoreClient,
  deadlineMs: number,
): Promised<CombinedDecision> {
  let final: Promised<Decision>[] | undefined;
  for (let i = 0; i < checks.length; i++) {
    const check = checks[i] as BanCheck;
    const decision = whole.all[i] as Decision;
    const { ban } = check.rule;
    // A limit of 0 rejects everybody, so it bans nobody. A degraded rejection does not show that the client is to blame.
    if (ban === undefined || decision.allowed || decision.degraded || decision.blocked !== undefined || isZero(check.limit)) continue;
    final ??= [...whole.all];
    final[i] = banOrReject(check, ban, decision, client, deadlineMs);
  }
  if (final === undefined) return whole;
  return andThen<readonly Decision[], CombinedDecision>(allOf(final), (all) => combine(checks, all));
}

/** Counts one rejection. Returns what the client gets: the rejection, or the ban that it has led to. */
function banOrReject(
  { rule: { name, shadow }, key }: BanCheck,
  ban: Ban,
  rejection: Decision,
  { guard, onEvent }: StoreClient,
  deadlineMs: number,
): Promised<Decision> {
  // In shadow mode the client never sees the rejection, so it need not wait for the ban.
  const waits = !shadow && ban.mayBegin(key);
  const report = (error: unknown): void => activeListener(onEvent)?.({ type: "store-error", error });
  const counted = (blocked: Blocked | undefined): Decision => {
    if (blocked === undefined) return rejection;
    ban.learn(key, 0);
    if (blocked.begun) {
      activeListener(onEvent)?.({ type: "banned", name, key, forMs: ban.forMs, shadow });
      // The rejections that led to the ban no longer count. No request waits for that.
      runInBackground(() => guard.reset(ban.rejections, key), report);
    }
    return blockedDecision(rejection, { kind: "ban", untilMs: rejection.atMs + blocked.leftMs }, rejection.atMs);
  };
  const failed = (error: unknown): Decision => {
    ban.learn(key, 0);
    report(error);
    return rejection;
  };
  const counting = attempt(() => andThen<Blocked | undefined, Decision>(ban.count(guard, key), counted), failed);
  if (!isPromise(counting)) return counting;
  return waits ? atMost(msUntil(deadlineMs), counting, () => undefined).then(undefined, () => rejection) : rejection;
}
