import { createServer, type IncomingMessage, type Server } from "node:http";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import { clientClosedRequest, whenEnded } from "@floodgate/core/adapter";

/** A server that passes nothing of Node: a request's signal tells that its client has disconnected, and the address has Deno's form. */
export function requestServer(fetch: (request: Request, env: object) => Response | Promise<Response>): Server {
  // As in Deno, a client that has reset its connection still has an address.
  const addresses = new WeakMap<Socket, string | undefined>();
  const server = createServer(async (incoming, outgoing) => {
    const gone = new AbortController();
    whenEnded(outgoing, (status) => {
      if (status === clientClosedRequest) gone.abort();
    });
    const request = requestOf(incoming, gone.signal);
    if (request === undefined) {
      outgoing.writeHead(400).end();
      return;
    }
    const response = await fetch(request, { remoteAddr: { hostname: addresses.get(incoming.socket) ?? incoming.socket.remoteAddress } });
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    // A disconnecting client ends the pipeline; that is no error.
    await pipeline(response.body === null ? [] : Readable.fromWeb(response.body as ReadableStream), outgoing).catch(() => undefined);
  });
  return server.on("connection", (socket) => addresses.set(socket, socket.remoteAddress));
}

function requestOf(incoming: IncomingMessage, signal: AbortSignal): Request | undefined {
  const { method = "GET", headers, url = "/" } = incoming;
  const lines = Object.entries(headers).map(([name, value]) => [name, String(value)] as [string, string]);
  const body = method === "GET" || method === "HEAD" ? {} : { body: Readable.toWeb(incoming), duplex: "half" };
  try {
    const target = url.startsWith("/") ? `http://localhost${url}` : url;
    return new Request(target, { method, headers: lines, signal, ...body } as RequestInit);
  } catch {
    return undefined;
  }
}
