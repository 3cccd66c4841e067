import type { PossiblePath, RequestPath } from "./path.js";

/**
 * The path that routers follow which read a target with Node's `url.parse`, as those of Express and Koa do. They are exact for a path
 * that `url.parse` leaves as it is. It escapes some characters where a target has a `#`, white space or a host, and then a router that
 * is mounted further in may see another path: it cuts its mount path, as parsed, from the target as sent.
 * @param base what routers have taken off the path so far.
 * @param path the rest, as parsed.
 * @param target the rest as it is cut from the request target, with its query.
 * @param sentTarget the request target that the client sent.
 */
export function parsedPath(base: string, path: string, target: string, sentTarget: string): RequestPath {
  const routed = base + path;
  const isAsSent = sentTarget.length === base.length + target.length && sentTarget.startsWith(base) && sentTarget.endsWith(target);
  if (isAsSent && target.startsWith(path) && !path.includes("//")) return routed;
  const possible: PossiblePath[] = [{ path: routed }];
  // A rule may be written for the path that the app serves or, where it rewrites paths, for the one that clients know.
  const sent = sentPath(sentTarget);
  if (sent !== routed && `${sent}/` !== routed) possible.push({ path: sent });
  const known = certainStart(target);
  if (known !== undefined) possible.push({ path: base + known, unknown: "after" });
  const knownOfSent = target === sentTarget ? undefined : certainStart(sentTarget);
  if (knownOfSent !== undefined) possible.push({ path: knownOfSent, unknown: "after" });
  return possible.length === 1 ? routed : possible;
}

/** The path of a request target, as it is written there. */
export function sentPath(target: string): string {
  return /^(?:[a-z][a-z\d+.-]*:\/\/[^/?#]*)?([^?#]*)/i.exec(target)?.[1] || "/";
}

/** The segments up to where routers may no longer agree on the rest; undefined where they agree on all. */
function certainStart(target: string): string | undefined {
  let from = 0;
  if (target.startsWith("/")) {
    if (!/[\t\n\f\r #\xa0\ufeff]/.test(target)) return undefined;
  } else {
    const host = /^[a-z][a-z\d+.-]*:\/\/[\w.:@[\]-]*(?=[/?#]|$)/i.exec(target);
    if (host === null) return "";
    from = host[0].length;
  }
  const path = sentPath(target.slice(from));
  // What `url.parse` escapes or takes for a slash, and what it may take for a host.
  const unlike = path.search(/[\s"'<>\\^`{|}]|\/\//);
  return unlike < 0 ? undefined : path.slice(0, path.lastIndexOf("/", unlike));
}
