import type { IncomingMessage } from "node:http";
import { type OwnAnswer, problem } from "./answer.js";

/** `example.com`, `127.0.0.1:8080`, `[::1]:8080`. */
const hostPattern = /^(?:\[[\da-f:.]+\]|[\w.~-]+)(?::\d{0,5})?$/i;

/** A `..` in a path, however it is encoded. */
const climbs = /(?:^|[/\\]|%2f|%5c)(?:\.|%2e){2}(?:[/\\?]|%2f|%5c|$)/i;

/**
 * Refuses what Node's parser accepts, but another server may read differently. One request could hide in another (request smuggling), or the
 * upstream could see another host or path than the rules do. A target in absolute form is rewritten to its path.
 * @param hasPrefix whether the path comes after a path of the upstream, which `..` could leave.
 * @returns undefined if the request may be passed on.
 */
export function refusal(request: IncomingMessage, hasPrefix: boolean): OwnAnswer | undefined {
  const { httpVersion, rawHeaders, headers, method } = request;
  if (httpVersion !== "1.1" && httpVersion !== "1.0") return problem(505, `The gateway speaks HTTP/1.1, not HTTP/${httpVersion}.`);
  let hosts = 0;
  let codings = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    // The lengths are compared first because almost no header has them.
    if (name.length === 4 && name.toLowerCase() === "host") hosts++;
    else if (name.length === 17 && name.toLowerCase() === "transfer-encoding") codings++;
  }
  if (codings > 0) {
    if (httpVersion === "1.0") return problem(400, "HTTP/1.0 has no Transfer-Encoding.");
    const coding = headers["transfer-encoding"];
    if (codings > 1 || coding?.toLowerCase() !== "chunked") return problem(501, "The gateway knows one transfer coding: chunked.");
  }
  if (hosts > 1) return problem(400, "The request has several Host headers.");
  const { host } = headers;
  if (host !== undefined && !hostPattern.test(host)) return problem(400, "The Host header is not a host.");
  if (method === "TRACE" || method === "CONNECT") return problem(405, `The gateway does not pass ${method} on.`);
  const refused = refusedTarget(request);
  if (refused !== undefined || !hasPrefix) return refused;
  const [path = ""] = (request.url as string).split("?", 1);
  return path === "*" || climbs.test(path) ? problem(400, "The path leaves the path of the upstream.") : undefined;
}

function refusedTarget(request: IncomingMessage): OwnAnswer | undefined {
  const { url: target = "", method, headers } = request;
  if (target.includes("#")) return problem(400, "The request target has a fragment (#). A client keeps it to itself.");
  if (target.startsWith("/")) return undefined;
  if (target === "*") {
    return method === "OPTIONS" ? undefined : problem(400, "Only OPTIONS may have the target *.");
  }
  const [, authority, path = ""] = /^https?:\/\/([^/?]*)(.*)$/is.exec(target) ?? [];
  if (authority === undefined) return problem(400, "The request target is neither a path nor an http URL.");
  if (!hostPattern.test(authority)) return problem(400, "The request target has an invalid host.");
  if (headers.host !== undefined && authority.toLowerCase() !== headers.host.toLowerCase()) {
    return problem(400, "The request target and the Host header name different hosts.");
  }
  headers.host = authority;
  request.url = path.startsWith("/") ? path : `/${path}`;
  return undefined;
}
