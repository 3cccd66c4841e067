import { type EventListener, tellWarning } from "../limits/events.js";
import type { RequestReader } from "./request-reader.js";

/** A proxy marks every request that it passes on, so the first ones tell; to look at all would cost each the reading of its headers. */
const looksMost = 1000;

type IpReader<Req> = Pick<RequestReader<Req>, "header" | "remoteAddress" | "clientIp" | "trustsProxy">;

/**
 * Reads the client's address as the framework sees it, and notices what is wrong most often: that a proxy stands in front
 * which the framework was not told of, so that all clients count as one.
 */
export function frameworkIp<Req>(reader: IpReader<Req>, onEvent: EventListener | undefined): (request: Req) => string | undefined {
  let looksLeft = looksMost;
  return (request) => {
    const ip = reader.clientIp(request);
    if (looksLeft > 0) {
      looksLeft--;
      if (isForwarded(reader, request) && !reader.trustsProxy(request)) {
        const remoteAddress = reader.remoteAddress(request);
        // Another address means that the app reads the proxy's header itself.
        if (ip === remoteAddress) {
          looksLeft = 0;
          warn(onEvent, remoteAddress);
        }
      }
    }
    return ip;
  };
}

function isForwarded<Req>(reader: IpReader<Req>, request: Req): boolean {
  return reader.header(request, "x-forwarded-for") !== undefined || reader.header(request, "forwarded") !== undefined;
}

function warn(onEvent: EventListener | undefined, remoteAddress: string | undefined): void {
  // The process is told once, however many middlewares it has: they are of one app.
  tellWarning(
    onEvent,
    "FLOODGATE_MISSING_PROXY_SETTING",
    `A request from ${remoteAddress ?? "an unknown address"} carries a forwarded address, but no proxy is trusted, so it counts as that of the connection. If a proxy of yours stands in front, all its clients share one limit: set the framework's proxy setting, or clientIp: { trustedHops: 1 }. If none does, the client made it up, and all is well: clientIp: { trustedHops: 0 } says so.`,
  );
}
