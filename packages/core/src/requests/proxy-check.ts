import type { EventListener } from "../events/events.js";
import { emitWarning } from "../events/listeners.js";
import { FloodgateError } from "../support/errors.js";
import { warnOnce } from "../support/warn.js";
import type { RequestReader } from "./request-reader.js";

type AddressReader<Req> = Pick<RequestReader<Req>, "header" | "remoteAddress" | "clientIp" | "trustsProxy">;

/**
 * Checks the framework's proxy setting on the first requests, whatever the rules count by. It finds a setting that lets clients forge
 * their address, and a proxy that the framework does not know, so that all its clients share one limit.
 */
export class ProxyCheck<Req> {
  readonly #reader: AddressReader<Req>;
  readonly #onEvent: EventListener | undefined;
  #isDone = false;

  constructor(reader: AddressReader<Req>, onEvent: EventListener | undefined) {
    this.#reader = reader;
    this.#onEvent = onEvent;
  }

  /**
   * @param throws whether to throw `FLOODGATE_FORGEABLE_CLIENT_IP` if clients can forge their address. The console gets it in any case, once.
   */
  look(request: Req, throws: boolean): void {
    if (this.#isDone) return;
    let ip: string | undefined;
    try {
      ip = this.#reader.clientIp(request);
    } catch (error) {
      if (error instanceof FloodgateError) warnOnce(error.code, error.message);
      if (throws) throw error;
      return;
    }
    if (!this.#isForwarded(request) || this.#reader.trustsProxy(request)) return;
    const remoteAddress = this.#reader.remoteAddress(request);
    // Another address means that the app reads the proxy's header itself.
    if (ip !== remoteAddress) return;
    this.#isDone = true;
    // All middlewares of a process belong to one app, so the console gets this once.
    emitWarning(
      this.#onEvent,
      "FLOODGATE_MISSING_PROXY_SETTING",
      `A request from ${remoteAddress ?? "an unknown address"} carries a forwarded address, but no proxy is trusted, so it counts as that of the connection. If a proxy of yours stands in front, all its clients share one limit: set the framework's proxy setting, or clientIp: { trustedHops: 1 }. If none does, the client made it up, and all is well: clientIp: { trustedHops: 0 } says so.`,
    );
  }

  #isForwarded(request: Req): boolean {
    return this.#reader.header(request, "x-forwarded-for") !== undefined || this.#reader.header(request, "forwarded") !== undefined;
  }
}
