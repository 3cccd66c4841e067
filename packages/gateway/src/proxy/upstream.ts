import { readFileSync } from "node:fs";
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { isIP } from "node:net";
import type { ProxyServerOptions } from "httpxy";
import { isUnix } from "../config/address.js";
import type { Settings } from "../config/settings.js";
import { usable } from "../service/secrets.js";

/** How httpxy reaches the upstream. */
export interface Upstream {
  /** For requests on connections that are kept alive. */
  readonly options: ProxyServerOptions;
  /** For a request on a connection of its own. */
  readonly freshOptions: ProxyServerOptions;
  readonly isTls: boolean;
  /** Whether the paths of requests are put after a path of the upstream's URL. */
  readonly hasPrefix: boolean;
  close(): void;
}

type Target = Extract<ProxyServerOptions["target"], { hostname?: string }>;

/** How long an unused connection is kept. A shorter time that the upstream says in `Keep-Alive` wins. */
const idleMs = 60_000;

/**
 * @throws FloodgateError `FLOODGATE_INVALID_OPTION` if the file of certificates cannot be read.
 */
export function upstreamOf(settings: Settings): Upstream {
  const { upstream = "", preserveHost, upstreamMaxConnections: maxSockets = Number.POSITIVE_INFINITY } = settings;
  const target = targetOf(upstream);
  const isTls = target.protocol === "https:";
  const tls = isTls ? tlsOf(settings, target.hostname as string) : undefined;
  const kept = { keepAlive: true, maxSockets, maxFreeSockets: 1024, timeout: idleMs, ...tls };
  const agent = isTls ? new HttpsAgent(kept) : new HttpAgent(kept);
  const single = { keepAlive: false, ...tls };
  const freshAgent = isTls ? new HttpsAgent(single) : new HttpAgent(single);
  const options = { target, changeOrigin: !preserveHost, secure: !settings.upstreamInsecure, selfHandleResponse: true };
  return {
    options: { ...options, agent },
    freshOptions: { ...options, agent: freshAgent },
    isTls,
    hasPrefix: target.pathname !== undefined,
    close() {
      agent.destroy();
      freshAgent.destroy();
    },
  };
}

function targetOf(upstream: string): Target {
  if (isUnix(upstream)) return { protocol: "http:", hostname: "localhost", socketPath: upstream.slice("unix:".length) };
  const { protocol, hostname, port, pathname } = new URL(upstream);
  const prefix = pathname.replace(/\/+$/, "");
  return {
    protocol,
    // A URL puts an IPv6 address in brackets, a connection takes it without.
    hostname: hostname.replace(/^\[|\]$/g, ""),
    port: port === "" ? (protocol === "https:" ? 443 : 80) : Number(port),
    ...(prefix !== "" && { pathname: prefix }),
  };
}

/** The certificate must be the upstream's own, whatever host the client names. */
function tlsOf(
  { upstreamCaFile, upstreamInsecure }: Settings,
  hostname: string,
): { servername: string; rejectUnauthorized: boolean; ca?: string } {
  const base = { servername: isIP(hostname) === 0 ? hostname : "", rejectUnauthorized: !upstreamInsecure };
  if (upstreamCaFile === undefined) return base;
  return { ...base, ca: usable("upstreamCaFile", upstreamCaFile, () => readFileSync(upstreamCaFile, "utf8")) };
}
