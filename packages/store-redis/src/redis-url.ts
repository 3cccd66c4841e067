/** The parts of a Redis URL. */
export interface RedisAddress {
  readonly host: string;
  readonly port: number;
  readonly username: string;
  readonly password: string;
  readonly db: number;
  readonly tls: boolean;
}

/**
 * Parses `redis://user:password@host:port/database`; `rediss:` for TLS. Returns undefined for anything else. Both client libraries read URLs in
 * their own way; this is what the command line and the gateway take.
 */
export function parseRedisUrl(text: string): RedisAddress | undefined {
  try {
    const { protocol, hostname, port, username, password, pathname, search, hash } = new URL(text);
    if (!/^rediss?:$/.test(protocol) || hostname === "" || !/^(\/\d{0,4})?$/.test(pathname + search + hash)) return undefined;
    return {
      host: hostname.replace(/^\[|\]$/g, ""),
      port: Number(port || 6379),
      username: decodeURIComponent(username),
      password: decodeURIComponent(password),
      db: Number(pathname.slice(1)),
      tls: protocol === "rediss:",
    };
  } catch {
    // It is not a URL, or has an invalid percent-encoding.
    return undefined;
  }
}
