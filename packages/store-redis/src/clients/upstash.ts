import { RedisClient, type Run } from "./client.js";

/** The used part of a client of `@upstash/redis`: where its server is, and the headers with its token. */
export interface Upstash {
  evalsha(...args: never[]): Promise<unknown>;
}

interface Connection {
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  /** What the library passes to fetch: `cache` so that Next.js stores no answers, `backend` for Fastly. */
  readonly options?: { readonly cache?: string; readonly backend?: string };
}

/** A request that is not answered by then has been given up by every caller. It is ended, so that it holds no connection. */
const longestMs = 30_000;

/** The hashes of scripts, in runtimes without `node:crypto`. */
const hashes = new Map<string, string>();

async function hashOf(source: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-1", new TextEncoder().encode(source));
  const hash = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
  hashes.set(source, hash);
  return hash;
}

/** The connection of an Upstash client; undefined for any other. */
export function upstashConnection(client: unknown): Connection | undefined {
  const connection = (client as { readonly client?: Partial<Connection> } | null)?.client;
  return typeof connection?.baseUrl === "string" && typeof connection.headers === "object" ? (connection as Connection) : undefined;
}

/**
 * Redis behind Upstash's REST API. The requests are sent here and not by the library: that sends a request again if its connection breaks, and
 * a decision that may have been made must not be made twice.
 */
export class UpstashClient extends RedisClient {
  /** Each command may have a connection of its own. */
  override readonly keepsOrder = false;
  readonly isReady = true;
  readonly #connection: Connection;

  constructor(connection: Connection) {
    super();
    this.#connection = connection;
  }

  send(runs: readonly Run[]): Promise<unknown>[] {
    return runs.map(({ command, args }) => this.#post([command, ...args]));
  }

  async #post(command: string[]): Promise<unknown> {
    const [name, script] = command as [string, string];
    if (name === "EVALSHA" && script.length > 40) command[1] = hashes.get(script) ?? (await hashOf(script));
    const { baseUrl, headers, options: { cache, backend } = {} } = this.#connection;
    const { authorization, Authorization = authorization } = headers as Record<string, string>;
    const response = await fetch(baseUrl, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: Authorization as string },
      body: JSON.stringify(command),
      signal: AbortSignal.timeout(longestMs),
      ...(cache && { cache }),
      ...(backend && { backend }),
    });
    const body = await response.text();
    let answer: { readonly result?: unknown; readonly error?: string };
    try {
      answer = JSON.parse(body);
    } catch {
      throw new Error(`the server answered ${response.status} with a body that is not JSON`);
    }
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer.result;
  }
}
