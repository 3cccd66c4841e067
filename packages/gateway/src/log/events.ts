import { createHash, createHmac } from "node:crypto";
import type { DecisionEvent, FloodgateEvent } from "@floodgate/core";
import { reasonOf } from "@floodgate/core/adapter";
import { maskKey } from "@floodgate/core/rules";
import type { Logger } from "pino";
import type { Settings } from "../config/settings.js";
import { inOwnWords } from "../service/limit.js";
import { sampledLog, type WriteSampled } from "./log.js";

/** Logs the events of a limit. A flood of limited requests makes few lines. */
export class EventLog {
  readonly #log: Logger;
  readonly #limited: ReturnType<typeof capped>;
  readonly #faults: WriteSampled;
  readonly #shownKey: (key: string) => string;
  /** The parts of the store whose failure was logged, and which have not answered since. */
  readonly #down = new Set<string>();

  constructor({ logLimited, logKeys }: Settings, keySecret: string | undefined, log: Logger) {
    this.#log = log;
    this.#limited = capped(logLimited, (count) => log.info({ count }, "more requests were limited in this second"));
    this.#faults = sampledLog(log);
    this.#shownKey = logKeys === "plain" ? (key) => key : logKeys === "masked" ? maskKey : (key) => digest(key, keySecret);
  }

  readonly tell = (event: FloodgateEvent): void => {
    const log = this.#log;
    switch (event.type) {
      case "limited":
      case "shadow-limited":
        this.#tellLimited(event);
        break;
      case "banned":
        if (this.#limited.admits()) log.info({ rule: event.name, key: this.#shownKey(event.key), forMs: event.forMs }, "banned");
        break;
      case "store-error":
      case "refund-failed":
      case "settle-failed":
        this.#tellFault(event.type, event.error);
        break;
      case "breaker":
        this.#tellBreaker(event);
        break;
      case "rules-reloaded":
        log.info({ source: event.source, version: event.version }, "The rules were reloaded.");
        break;
      case "rules-refused":
        log.error(
          { source: event.source },
          `New rules were refused. The previous rules stay in force:\n${inOwnWords(reasonOf(event.error).why)}`,
        );
        break;
      case "warning":
        log.warn({ code: event.code }, event.code === "FLOODGATE_MISSING_PROXY_SETTING" ? untrustedProxy(event.message) : event.message);
        break;
    }
  };

  /** Logs what was left out so far. */
  close(): void {
    this.#limited.flush();
  }

  /** A breaker opens again after each try that fails. An outage is logged once. */
  #tellBreaker({ state, part = "" }: FloodgateEvent & { readonly type: "breaker" }): void {
    const where = part === "" ? {} : { part };
    if (state === "open" && !this.#down.has(part)) {
      this.#down.add(part);
      this.#log.warn(where, "The store fails. It is not asked until it answers again.");
    } else if (state === "closed" && this.#down.delete(part)) this.#log.info(where, "The store answers again.");
  }

  #tellFault(type: keyof typeof faultMessages, error: unknown): void {
    const { code = "", why } = reasonOf(error);
    this.#faults("warn", `${type} ${code}`, faultMessages[type], { reason: why });
  }

  #tellLimited({ type, name, key, decision }: DecisionEvent): void {
    if (!this.#log.isLevelEnabled("info") || !this.#limited.admits()) return;
    const { limit, retryAfterMs } = decision;
    const wait = Number.isFinite(retryAfterMs) ? { retryAfterMs } : {};
    const message = type === "limited" ? "limited" : "would be limited (shadow)";
    this.#log.info({ rule: name, key: this.#shownKey(key), limit, ...wait }, message);
  }
}

const faultMessages = {
  "store-error": "The store could not decide.",
  "refund-failed": "A refund failed.",
  "settle-failed": "A settlement failed.",
} as const;

function digest(key: string, secret: string | undefined): string {
  const hash = secret === undefined ? createHash("sha256") : createHmac("sha256", secret);
  return hash.update(key).digest("hex").slice(0, 16);
}

/** Core's warning in the words of our settings. */
function untrustedProxy(message: string): string {
  const [, peer = "an address"] = /^A request from (\S+) /.exec(message) ?? [];
  return `Requests come from ${peer} with a forwarded client address, but this peer is not trusted, so all its clients share one limit. If it is a proxy of yours, write --trusted-peers loopback,${peer}. If not, a client made the header up, and all is well.`;
}

/**
 * Lets through the first events of each second, and counts the others.
 * @param tellOmitted called at the end of a second in which events were left out.
 */
function capped(perSecond: number, tellOmitted: (count: number) => void) {
  let events = 0;
  let timer: NodeJS.Timeout | undefined;
  /** Ends the second: tells how many events were left out, and starts anew. */
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    const omitted = events - perSecond;
    events = 0;
    if (omitted > 0) tellOmitted(omitted);
  };
  /** Whether this event may be logged. */
  const admits = (): boolean => {
    // Only a second with events has a timer.
    timer ??= setTimeout(flush, 1000).unref();
    return ++events <= perSecond;
  };
  return { admits, flush };
}
