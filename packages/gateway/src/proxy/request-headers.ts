import type { IncomingHttpHeaders } from "node:http";
import type { Settings } from "../config/settings.js";
import { headersOfSources } from "../service/keys.js";
import type { GatewayRequest } from "../service/request.js";

/** Headers that concern one connection only (RFC 9110 §7.6.1). */
export const hopByHop = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "upgrade",
] as const;

/** Only a trusted peer may say these, and all that begin like `trustedPrefix`. Some frameworks believe them. */
const fromTrustedOnly = ["forwarded", "x-client-ip", "x-cluster-client-ip", "x-real-ip"];
const trustedPrefix = /^x-(?:forwarded|original)-/;

/**
 * A server that believes one of these (IIS, Zend, old Symfony) handles another path than the one that rules have matched. A trusted proxy may
 * pass on what its client has written, so nobody may say them.
 */
const pathOverrides = ["x-original-url", "x-rewrite-url"];

/** The same for the method. */
const methodOverrides = ["x-http-method", "x-http-method-override", "x-method-override"];

/** Other servers make one name of `X_User`, `X.User` and `X-User` (CGI, WSGI, PHP), so nginx drops the first two, and so does the gateway. */
const ambiguous = /[^a-z\d-]/;

/**
 * `Connection` cannot remove these: the framing, and what a trusted peer says about its client. For WebSockets, nginx may pass on the client's
 * own `Connection`. With it, the client could remove what nginx says about it.
 */
const kept: ReadonlySet<string> = new Set(["connection", "content-length", "forwarded", "host", "transfer-encoding", "x-real-ip"]);

/**
 * The headers of a request to the upstream, from those that the client sent.
 * @param upgrade the protocol to upgrade to.
 */
export type RequestHeaders = (request: GatewayRequest, headers: IncomingHttpHeaders, upgrade?: string) => IncomingHttpHeaders;

export function requestHeaders(settings: Settings): RequestHeaders {
  const { clientIpHeader, methodOverride, via } = settings;
  const said = new Set([...kept, clientIpHeader.toLowerCase(), ...headersOfSources(settings)]);
  const always = new Set([...hopByHop, "expect", "http2-settings", ...pathOverrides, ...(methodOverride ? [] : methodOverrides)]);
  const untrusted = new Set([...always, ...fromTrustedOnly, clientIpHeader.toLowerCase()]);
  return (request, headers, upgrade) => {
    const { fromTrustedPeer } = request;
    const dropped: ReadonlySet<string> = fromTrustedPeer ? always : untrusted;
    const named = namedIn(headers.connection, said);
    const sent: IncomingHttpHeaders = {};
    for (const name in headers) {
      if (dropped.has(name) || named?.has(name) || ambiguous.test(name)) continue;
      if (!fromTrustedPeer && trustedPrefix.test(name)) continue;
      sent[name] = headers[name];
    }
    forward(request, sent);
    if (via !== undefined) append(sent, "via", `1.1 ${via}`);
    if (/(?:^|,)\s*trailers\s*(?:$|[,;])/i.test(`${headers["te"] ?? ""}`)) {
      sent["te"] = "trailers";
      sent.connection = "keep-alive, te";
    }
    // A server such as IIS takes what follows on the connection for this client's.
    if (/^(?:ntlm|negotiate)\b/i.test(headers.authorization ?? "")) sent.connection = "close";
    if (upgrade !== undefined) {
      sent.connection = "Upgrade";
      sent.upgrade = upgrade;
    }
    return sent;
  };
}

/** Says who sent the request. */
function forward(request: GatewayRequest, sent: IncomingHttpHeaders): void {
  const { remoteAddress, host } = request;
  const peer = remoteAddress?.startsWith("::ffff:") && remoteAddress.includes(".") ? remoteAddress.slice(7) : remoteAddress;
  // A peer on a Unix socket has no address.
  if (peer !== undefined) append(sent, "x-forwarded-for", peer);
  sent["x-forwarded-proto"] ??= "http";
  if (host !== undefined) sent["x-forwarded-host"] ??= host;
  const node = peer === undefined ? "unknown" : peer.includes(":") ? `"[${peer}]"` : peer;
  append(sent, "forwarded", `for=${node};proto=http${host === undefined ? "" : `;host="${host}"`}`);
  const client = request.clientIp;
  if (client !== undefined) sent["x-real-ip"] = client;
}

/** Adds an item to the list that a header is. */
export function append(headers: IncomingHttpHeaders, name: string, item: string): void {
  const before = headers[name];
  headers[name] = before === undefined ? item : `${before}, ${item}`;
}

/**
 * The headers that `Connection` names, which end here (RFC 9110 §7.6.1). Returns undefined if it names only the usual ones.
 * @param stay headers that it may not name.
 */
export function namedIn(connection: string | undefined, stay: ReadonlySet<string> = kept): ReadonlySet<string> | undefined {
  if (connection === undefined || /^(?:keep-alive|close|upgrade)$/i.test(connection)) return undefined;
  const names = connection
    .toLowerCase()
    .split(",")
    .map((name) => name.trim());
  return new Set(names.filter((name) => !stay.has(name) && !name.startsWith("x-forwarded-")));
}
