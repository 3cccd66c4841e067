import type { Check } from "../decide/limit.js";
import type { EventListener } from "../events/events.js";
import { emitWarning } from "../events/listeners.js";
import { decodeKey } from "../limits/key.js";
import { ProxyCheck } from "../requests/proxy-check.js";
import { isWholeIpv6, type RequestContext } from "../requests/request-context.js";
import type { RequestReader } from "../requests/request-reader.js";
import { shown } from "../support/errors.js";
import { afterThisRun } from "../support/runtime.js";
import { DoubleCounts, isFirstUse, MadePerRequest, madePerRequestOf } from "./mounting-mistakes.js";

/** Mistakes of set-up show in an app's first requests. */
const mostRequests = 1000;

/** What an observer looks at. */
interface Looks<Req> {
  readonly reader: RequestReader<Req>;
  /** Whether to look at the framework's proxy setting: without the option `clientIp`. */
  readonly checksProxy: boolean;
  /** How many bits of an IPv6 address are one client. */
  readonly ipv6Prefix: number;
  /** The identity of the middleware's store. */
  readonly scope: object;
  readonly onEvent: EventListener | undefined;
}

/** Which addresses the rules of a version need. */
interface Addresses {
  /** Whether a rule may need the address of a client. */
  readonly readAddress: boolean;
  /** Whether an enforced rule may. */
  readonly needAddress: boolean;
}

/**
 * Looks for mistakes of set-up that only requests show: a middleware that is mounted twice or made for each request, a wrong proxy setting,
 * and keys that count each address of a client. It takes itself off after the first requests, and comes back if another middleware asks.
 */
export class SetupObserver<Req> {
  readonly #looks: Looks<Req>;
  readonly #attach: (observer: SetupObserver<Req> | undefined) => void;
  readonly #doubleCounts: DoubleCounts;
  readonly #proxyCheck: ProxyCheck<Req> | undefined;
  /** `"new"` until the end of the run of the event loop that made the middleware. If a request comes in that run: its app's, until the next. */
  #madePerRequest: MadePerRequest | "new" | undefined;
  #requestsLeft = mostRequests;
  readonly #warnedKeys = new Set<string>();

  /** @param attach puts an observer on the middleware, or takes it off. */
  constructor(middleware: object, looks: Looks<Req>, attach: (observer: SetupObserver<Req> | undefined) => void) {
    this.#looks = looks;
    this.#attach = attach;
    this.#doubleCounts = new DoubleCounts(middleware, looks.scope, () => attach(this));
    if (looks.checksProxy) this.#proxyCheck = new ProxyCheck(looks.reader, looks.onEvent);
    if (isFirstUse(looks.scope)) {
      this.#madePerRequest = "new";
      afterThisRun(() => {
        if (this.#madePerRequest === "new") this.#madePerRequest = undefined;
      });
    }
  }

  /**
   * Call it for each request.
   * @throws FloodgateError `FLOODGATE_FORGEABLE_CLIENT_IP` if an enforced rule needs the address, and clients can forge it.
   */
  sees(context: RequestContext<Req>, { readAddress, needAddress }: Addresses): void {
    if (this.#madePerRequest !== undefined) this.#noticeFirst(context);
    // A shadow rule warns when it reads the address.
    if (readAddress) this.#proxyCheck?.look(context.request, needAddress);
    if (this.#requestsLeft > 0) this.#requestsLeft--;
    else if (this.#doubleCounts.keepsLeft === 0) this.#attach(undefined);
  }

  /** Call it for each request that rules count. */
  counts(context: RequestContext<Req>, checks: readonly Check[]): void {
    const { onEvent } = this.#looks;
    const first = checks[0] as Check;
    if (this.#madePerRequest instanceof MadePerRequest) this.#madePerRequest.add(first.key, first.limit.name, onEvent);
    this.#doubleCounts.notice(context, checks, onEvent);
    if (this.#looks.ipv6Prefix < 128) for (const { key, limit } of checks) this.#lookAtKey(context, key, limit.name);
  }

  /** Finds an app that makes a middleware for each request. */
  #noticeFirst(context: RequestContext<Req>): void {
    const made = this.#madePerRequest;
    if (made === "new") {
      const app = this.#looks.reader.app?.(context.request);
      this.#madePerRequest = app === undefined ? undefined : madePerRequestOf(app);
    } else if (made !== undefined && context.previousHere === undefined) {
      made.clear();
      this.#madePerRequest = undefined;
    }
  }

  #lookAtKey(context: RequestContext<Req>, text: string, name: string): void {
    if (!text.includes(":") || this.#warnedKeys.has(name)) return;
    const key = decodeKey(text);
    const isAddress = (part: unknown): boolean => typeof part === "string" && part.includes(":") && isWholeIpv6(context, part);
    if (!(Array.isArray(key) ? key.some(isAddress) : isAddress(key))) return;
    this.#warnedKeys.add(name);
    emitWarning(
      this.#looks.onEvent,
      "FLOODGATE_KEY_PER_ADDRESS",
      `The key of ${shown(name)} has the client's whole IPv6 address in it. One client has 2^64 addresses or more, so this limits nobody. Write key: "ip", or (req, { ip }) => ip: that is the client's network.`,
      `FLOODGATE_KEY_PER_ADDRESS ${name}`,
    );
  }
}
