import { type Grant, isOver, type Moment } from "./grant.js";

/** A key is hot if it had so many requests in one life. Units do not count here: one large request makes no key hot. */
const hotRequests = 10;
/** The most units of the first grant. Later ones may be twice as large as the one before. */
const firstUnits = 32;
/** The least units that are worth a grant. */
export const leastUnits = 2;
/** One to spend, and one to renew it. */
const maxGrants = 2;

/** A request to Redis for units, while its outcome is unknown. */
export interface Fetch {
  /** The id of the lease that it asks for. */
  readonly id: string;
  /** Set if the key was reset or blocked here meanwhile: then the units must not be spent. */
  isVoid: boolean;
}

/**
 * What one process holds of one key: a state machine without clock, timer or connection. Methods that return grants hand them over: the
 * caller gives back their unused units, and nobody spends them any more.
 */
export class KeyLease {
  /** Oldest first. */
  grants: Grant[] = [];
  fetch: Fetch | undefined = undefined;
  /** Leases that are over here, and that Redis may not know of yet. */
  ending = 0;
  /** No fetch before this time. */
  restUntilMs: number = Number.NEGATIVE_INFINITY;
  /** The units and the requests since `sinceMs`, which is at most a life ago, and in the life before. */
  units = 0;
  unitsBefore = 0;
  requests = 0;
  requestsBefore = 0;
  sinceMs: number;
  /** What remains for this process as last seen: in Redis, and here. */
  remaining = 0;
  /** The units of the last fetch. */
  wanted: number = firstUnits / 2;

  constructor(nowMs: number) {
    this.sinceMs = nowMs;
  }

  get isIdle(): boolean {
    return this.grants.length === 0 && this.fetch === undefined && this.ending === 0;
  }

  get #perLife(): number {
    return Math.max(this.units, this.unitsBefore);
  }

  /** As last counted. */
  get isHot(): boolean {
    return Math.max(this.requests, this.requestsBefore) >= hotRequests;
  }

  /** Counts what a request asks for. */
  count(cost: number, nowMs: number, lifeMs: number): void {
    const ageMs = nowMs - this.sinceMs;
    if (ageMs >= lifeMs || ageMs < 0) {
      const isRecent = ageMs >= 0 && ageMs < 2 * lifeMs;
      this.unitsBefore = isRecent ? this.units : 0;
      this.requestsBefore = isRecent ? this.requests : 0;
      this.units = 0;
      this.requests = 0;
      this.sinceMs = nowMs;
    }
    this.units += cost;
    this.requests++;
  }

  /** The oldest grant that has `cost` units to spend. */
  find(cost: number, now: Moment): Grant | undefined {
    for (const grant of this.grants) if (grant.units - grant.spent >= cost && !isOver(grant, now)) return grant;
    return undefined;
  }

  spend(grant: Grant, cost: number): void {
    grant.spent += cost;
    this.remaining -= cost;
  }

  /** The units to fetch now; 0 if there are enough, or none are needed. */
  want(nowMs: number, lifeMs: number): number {
    // While Redis does not answer, no more units get out of reach.
    if (this.fetch !== undefined || this.ending > 0 || !this.isHot) return 0;
    const perLife = this.#perLife;
    const restMs = this.restUntilMs - nowMs;
    if (restMs > 0 && restMs <= lifeMs) return 0;
    let useful = 0;
    for (const { units, spent, untilMs } of this.grants) {
      useful += Math.max(0, Math.min(units - spent, ((untilMs - nowMs) * perLife) / lifeMs));
    }
    // Renew before the units or the time run out.
    if (useful * 2 >= perLife) return 0;
    return Math.max(leastUnits, Math.min(Math.ceil(perLife - useful), 2 * this.wanted));
  }

  begin(want: number, id: string): Fetch {
    this.wanted = want;
    this.fetch = { id, isVoid: false };
    return this.fetch;
  }

  /** Redis has debited a grant. */
  granted(fetch: Fetch, grant: Grant, now: Moment, lifeMs: number): Grant[] {
    this.fetch = undefined;
    if (fetch.isVoid || isOver(grant, now)) {
      this.rest(now.ms, lifeMs);
      return [grant];
    }
    this.grants.push(grant);
    this.remaining = this.grants.reduce((sum, { units, spent }) => sum + units - spent, grant.remaining);
    return this.grants.length > maxGrants ? this.grants.splice(0, 1) : [];
  }

  /** Redis has debited nothing, or its answer is lost. @param restMs until when no other fetch would get more. */
  refused(nowMs: number, restMs: number): void {
    this.fetch = undefined;
    this.rest(nowMs, restMs);
  }

  rest(nowMs: number, restMs: number): void {
    this.restUntilMs = nowMs + restMs;
  }

  /** Ends grants whose time is over. */
  endOver(now: Moment): Grant[] {
    const over = this.grants.filter((grant) => isOver(grant, now));
    if (over.length > 0) this.grants = this.grants.filter((grant) => !over.includes(grant));
    return over;
  }

  /** Ends everything, also what a fetch in flight brings. */
  end(): Grant[] {
    if (this.fetch !== undefined) this.fetch.isVoid = true;
    return this.grants.splice(0);
  }
}
