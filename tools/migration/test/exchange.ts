import { createServer, type RequestListener, STATUS_CODES } from "node:http";
import { listen } from "../../../test/listen.js";

/** A request to an app, on the loopback interface. */
export interface Request {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly json?: unknown;
}

export interface Reply {
  readonly status: number;
  /** By lower-case names, without those that say nothing about limits. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Headers of the connection and of frameworks. */
const ignored = ["date", "connection", "keep-alive", "x-powered-by", "etag", "content-length", "transfer-encoding", "vary"];

/** Anything that answers requests: an Express app, the callback of a Koa app. */
export type App = RequestListener;

/** Sends requests to an app one after the other. */
export async function exchange(app: App, requests: readonly Request[]): Promise<Reply[]> {
  const server = createServer(app);
  try {
    return await send(`http://127.0.0.1:${await listen(server)}`, requests);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

async function send(url: string, requests: readonly Request[]): Promise<Reply[]> {
  const replies: Reply[] = [];
  for (const { method = "GET", path = "/", headers = {}, json } of requests) {
    const response = await fetch(url + path, {
      method,
      headers: { ...headers, connection: "close", ...(json !== undefined && { "content-type": "application/json" }) },
      ...(json !== undefined && { body: JSON.stringify(json) }),
    });
    replies.push({
      status: response.status,
      headers: Object.fromEntries([...response.headers].filter(([name]) => !ignored.includes(name))),
      body: await response.text(),
    });
  }
  return replies;
}

/** Replies as a page shows them: the first one, and the first that is rejected. */
export function shown(replies: readonly Reply[]): string {
  const rejected = replies.find(({ status }) => status === 429 || status === 503);
  return [replies[0], rejected].map((reply) => (reply === undefined ? "" : text(reply))).join("\n");
}

function text({ status, headers, body }: Reply): string {
  const fields = Object.entries(headers)
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([name, value]) => `${fieldName(name)}: ${value}\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\n${fields.join("")}${status < 400 || body === "" ? "" : `\n${body}\n`}`;
}

/** A header's name as documents write it: `X-RateLimit-Limit`. */
function fieldName(name: string): string {
  return name.replace(/(?<=^|-)[a-z]/g, (letter) => letter.toUpperCase()).replace("Ratelimit", "RateLimit");
}

export function times(count: number, request: Request = {}): Request[] {
  return Array.from({ length: count }, () => request);
}
