import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Header } from "@floodgate/core/adapter";
import { pairsOf } from "./message.js";
import { append, hopByHop, namedIn } from "./request-headers.js";

/** The framing is Node's: it writes `Transfer-Encoding` itself. */
const dropped: ReadonlySet<string> = new Set([...hopByHop, "transfer-encoding"]);

/**
 * The headers of the upstream's response for the client, as pairs. Rate limits of the upstream stay: items of lists come after ours. Of
 * headers that show one limit only, those of the upstream stay if it has limited the request; else ours replace them.
 * @param limits our rate limit headers.
 * @param mayChunk whether the client takes a chunked body, which trailers need.
 */
export function responseHead(upstream: IncomingMessage, limits: readonly Header[], mayChunk: boolean, via?: string): string[] {
  const { rawHeaders, statusCode: status } = upstream;
  const all: string[] = [];
  let ours = limits;
  let connection: string | undefined;
  let chunked = false;
  let trailer: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    const value = rawHeaders[i + 1] as string;
    const lower = name.toLowerCase();
    if (dropped.has(lower)) {
      if (lower === "connection") connection = connection === undefined ? value : `${connection},${value}`;
      else if (lower === "transfer-encoding") chunked = true;
      else if (lower === "trailer") trailer = value;
      continue;
    }
    // These statuses have no body, so a length would be another message's.
    if (lower === "content-length" && (status === 204 || status === 205)) continue;
    if (ours.length > 0 && lower.includes("ratelimit")) {
      const own = ours.find((header) => header.name.toLowerCase() === lower);
      if (own?.list && isQuoted(own.value) === isQuoted(value)) {
        all.push(name, `${own.value}, ${value}`);
        ours = ours.filter((header) => header !== own);
        continue;
      }
      if (own !== undefined) {
        if (status !== 429) continue;
        ours = ours.filter((header) => header !== own);
      }
    }
    all.push(name, value);
  }
  for (const { name, value } of ours) all.push(name, value);
  if (trailer !== undefined && chunked && mayChunk) all.push("Trailer", trailer);
  if (status === 205) all.push("Content-Length", "0");
  if (via !== undefined) all.push("Via", `1.1 ${via}`);
  const named = namedIn(connection);
  return named === undefined ? all : [...pairsOf(all)].filter(([name]) => !named.has(name.toLowerCase())).flat();
}

/** Whether a list is of the newest drafts, whose items are quoted names. Items of two drafts would make a list that no client reads. */
function isQuoted(list: string): boolean {
  return list.startsWith('"');
}

/** The same for an upgrade, whose head httpxy writes from `headers`. */
export function upgradeHead(upstream: IncomingMessage, limits: readonly Header[], via?: string): IncomingHttpHeaders {
  const headers: IncomingHttpHeaders = {};
  for (const [name, value] of pairsOf(responseHead(upstream, limits, false, via))) {
    const lower = name.toLowerCase();
    if (lower === "set-cookie") headers[lower] = [...(headers[lower] ?? []), value];
    else append(headers, lower, value);
  }
  return headers;
}
