import { afterTurn, type Clock, startTimer, stopTimer, workEndsWithRequest } from "@floodgate/core/store";
import type { RedisClient } from "./clients/client.js";

/**
 * A rejection is asked for again after this time, if not before. It bounds how late a change is noticed that was not announced: by a process
 * that has ended or lost its connection in between, by an older version, or by hand.
 */
export const longestAgeMs = 60_000;

/** A process announces its changes at most this often. An announcement covers the changes that follow it within this time. */
const announceMs = 1000;
/** The same for those who read it. Their clocks may run a little faster. */
const coveredMs = 1.1 * announceMs;
/** Shorter ages than this are not extended: the last announcement would have to be read too often. */
const minAgeMs = 1000;

/**
 * Returns three times in microseconds: the server's, that of the last announcement before this run, and that of the last one after it.
 * If there is no announcement, a read makes one: so a server that has lost its data is noticed. ARGV[1] is "1" to announce, which is only
 * done if somebody has read before. A full server takes no SET, but the readers notice a missing key too.
 */
const source = `local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
local before = redis.call('GET', KEYS[1])
local after = before or now
if (ARGV[1] == '1') == (before ~= false) then
after = now
if redis.pcall('SET', KEYS[1], now, 'PX', 86400000).err then redis.call('DEL', KEYS[1]) end
end
return { now, before or '', after }`;

/**
 * Notices when other processes make changes that may end a rejection early: a reset, an unblock, a refund. Each process announces its own
 * changes in one key of Redis, before it sends them, and reads that key while it rejects. Between two equal reads nothing has changed, so what
 * Redis has answered since the first one still holds.
 */
export class Changes {
  readonly #client: RedisClient;
  readonly #key: string;
  readonly #clock: Clock | undefined;
  readonly #maxAgeMs: number;
  /** The last announcement that this process knows, its own or another's. */
  #last: string | undefined;
  /** When the last one of another process was first seen. */
  #sinceMs = Number.POSITIVE_INFINITY;
  /** No other process has announced anything from then until this time. */
  #untilMs = Number.NEGATIVE_INFINITY;
  /** The server's clock less this process's, and how exactly that is known. */
  #aheadMs = Number.NaN;
  #roundTripMs = 0;
  #askedMs = Number.NEGATIVE_INFINITY;
  #announcedMs = Number.NEGATIVE_INFINITY;
  /** Repeats an announcement that failed. */
  #timer: unknown;

  /** @param maxAgeMs within which changes of other processes must be noticed; 0 if this process caches no rejections. */
  constructor(client: RedisClient, key: string, clock: Clock | undefined, maxAgeMs: number) {
    this.#client = client;
    this.#key = key;
    this.#clock = clock;
    this.#maxAgeMs = maxAgeMs;
  }

  /** Whether reads can extend the life of a cached rejection. On Workers, a read would end with the rejected request. */
  get isRead(): boolean {
    return this.#maxAgeMs >= minAgeMs && !workEndsWithRequest;
  }

  /** Whether a state that was asked for at a time may be extended, while no other process announces anything. */
  mayLast(sentMs: number): boolean {
    return sentMs >= this.#sinceMs + coveredMs;
  }

  /** Whether such a state still held `maxAgeMs` ago, or later. */
  holds(sentMs: number, nowMs: number): boolean {
    return this.mayLast(sentMs) && isWithin(nowMs - this.#untilMs, this.#maxAgeMs);
  }

  /** Reads the last announcement in the background, before it must be known. */
  read(nowMs: number): void {
    if (!this.isRead || isWithin(nowMs - this.#askedMs, this.#maxAgeMs * 0.75)) return;
    this.#askedMs = nowMs;
    // What cannot be read makes cached rejections too old, and no more.
    afterTurn(() => this.#ask(false).catch(() => undefined));
  }

  /**
   * Announces a change. It is sent at once, so that Redis has it before a change that is sent after it. If that fails, it is repeated until
   * no rejection is cached any more that is older than the change.
   * @param untilMs when that is, by the steady clock of this process, in milliseconds. Default: a minute from now.
   * @returns a promise of the answer, or of the first failure.
   */
  async announce(untilMs: number = performance.now() + longestAgeMs): Promise<void> {
    const nowMs = this.#nowMs();
    if (isWithin(nowMs - this.#announcedMs, announceMs)) return;
    const announced = (): void => {
      this.#announcedMs = nowMs;
    };
    // On Workers only an answer counts: what another request has sent may end with it.
    if (!workEndsWithRequest) announced();
    return this.#ask(true).then(announced, () => {
      this.#announcedMs = Number.NEGATIVE_INFINITY;
      if (performance.now() >= untilMs) return;
      stopTimer(this.#timer);
      this.#timer = startTimer(() => this.announce(untilMs), announceMs);
    });
  }

  async #ask(announces: boolean): Promise<void> {
    const [sentMs, sentSteadyMs] = [this.#nowMs(), performance.now()];
    // It must not wait in the library's offline queue.
    if (!this.#client.isReady) throw new Error("the client is not ready");
    const args = [source, "1", this.#key, announces ? "1" : ""];
    const [reply] = await Promise.all(this.#client.send([{ command: "EVAL", args, firstKey: this.#key }]));
    const [serverUs, before, after] = (reply as unknown[]).map(String) as [string, string, string];
    const steadyMs = performance.now();
    const roundTripMs = steadyMs - sentSteadyMs;
    const aheadMs = Number(serverUs) / 1000 - steadyMs;
    // Another server, a clock that was set, or a machine that was suspended: the times of states do not hold any more.
    const isSteady = Math.abs(aheadMs - this.#aheadMs) <= Math.max(roundTripMs, this.#roundTripMs) + 1;
    if (before === "" || before !== this.#last || !isSteady) this.#sinceMs = this.#nowMs();
    this.#last = after;
    this.#untilMs = sentMs;
    this.#aheadMs = aheadMs;
    this.#roundTripMs = roundTripMs;
  }

  #nowMs(): number {
    try {
      return this.#clock === undefined ? performance.now() : this.#clock();
    } catch {
      // An injected clock. Without a time, nothing is extended.
      return Number.NaN;
    }
  }
}

function isWithin(ageMs: number, maxMs: number): boolean {
  return ageMs >= 0 && ageMs <= maxMs;
}
