/** The parts of a Redis URL. */
export interface RedisAddress {
  readonly host: string;
  readonly port: number;
  readonly username: string;
  readonly password: string;
  readonly db: number;
  readonly tls: boolean;
  /** A Unix socket in place of host and port. */
  readonly path?: string;
  /** The address without user and password, for messages. */
  readonly place: string;
}

/**
 * Parses `redis://user:password@host:port/database`; `rediss:` for TLS; `unix://user:password@/path?db=1` for a Unix socket. Returns undefined for
 * anything else. Both client libraries read URLs in their own way; this is what the command line and the gateway take.
 */
export function parseRedisUrl(text: string): RedisAddress | undefined {
  try {
    // `URL` takes no password before an empty host.
    const url = new URL(text.replace(/^(unix:\/\/[^/]*)\//, "$1-/"));
    const { protocol, hostname, port, pathname, search, hash } = url;
    const [username, password, path] = [url.username, url.password, pathname].map(decodeURIComponent) as [string, string, string];
    const credentials = { username, password };
    if (protocol === "unix:" && /^-?$/.test(hostname) && path.length > 1 && /^(\?db=\d{1,4})?$/.test(search + hash))
      return { ...credentials, host: "", port: 0, db: Number(search.slice(4)), tls: false, path, place: path };
    if (!/^rediss?:$/.test(protocol) || hostname === "" || !/^(\/\d{0,4})?$/.test(pathname + search + hash)) return undefined;
    const host = hostname.replace(/^\[|\]$/g, "");
    const tls = protocol === "rediss:";
    const place = `${host}:${port || 6379}`;
    return { ...credentials, host, port: Number(port || 6379), db: Number(pathname.slice(1)), tls, place };
  } catch {
    // It is not a URL, or has an invalid percent-encoding.
    return undefined;
  }
}
