import { once } from "node:events";
import { type IncomingHttpHeaders, type IncomingMessage, request as openRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import Koa from "koa";
import Koa2 from "koa2";
import { type KoaModule, listening } from "./koa-app.js";

export const versions: [string, KoaModule][] = [
  ["Koa 3", Koa],
  ["Koa 2", Koa2 as unknown as KoaModule],
];

export interface ClientResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Sends a request with exactly this target. */
export type Ask = (target?: string, headers?: Record<string, string>) => Promise<ClientResponse>;

/** Runs a test against a listening app. */
export async function serving(app: Koa, run: (ask: Ask, port: number) => Promise<void>): Promise<void> {
  const server = await listening(app);
  const { port } = server.address() as AddressInfo;
  const ask: Ask = async (path = "/", headers = {}) => {
    const request = openRequest({ host: "127.0.0.1", port, path, headers, agent: false }).end();
    const [response] = (await once(request, "response")) as [IncomingMessage];
    return { status: response.statusCode ?? 0, headers: response.headers, body: await text(response) };
  };
  try {
    await run(ask, port);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** The statuses of requests for these targets, one after the other. */
export async function statuses(ask: Ask, ...targets: string[]): Promise<number[]> {
  const found: number[] = [];
  for (const target of targets) found.push((await ask(target)).status);
  return found;
}

/** An app that records the codes of its errors, or their messages. */
export function appOf(koa: KoaModule): { app: Koa; errors: string[] } {
  const app = new koa();
  const errors: string[] = [];
  app.on("error", (error: Error & { code?: string }) => errors.push(error.code ?? error.message));
  return { app, errors };
}

/** A handler that serves. */
export const ok: Koa.Middleware = (ctx) => {
  ctx.body = { ok: true };
};

/** A promise, and the function that resolves it. */
export function gate<T = void>(): { opened: Promise<T>; open: (value: T) => void } {
  let open: (value: T) => void = () => undefined;
  const opened = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
