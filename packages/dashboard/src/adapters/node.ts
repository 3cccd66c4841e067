import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline, Readable } from "node:stream";
import type { ReadableStream as WebStream } from "node:stream/web";
import type { TLSSocket } from "node:tls";
import { nodeHeader } from "@floodgate/core/adapter";
import type { Body, Reply, View } from "../routes/view.js";

/**
 * @param url the part of the URL below the mount path.
 * @param parsed what a body parser in front has made of the body.
 */
export function nodeView(request: IncomingMessage, url: string, parsed: unknown): View {
  const queryAt = url.indexOf("?");
  return {
    identity: request,
    method: request.method ?? "",
    path: queryAt < 0 ? url : url.slice(0, queryAt),
    query: queryAt < 0 ? "" : url.slice(queryAt + 1),
    httpVersion: request.httpVersion,
    tls: (request.socket as Partial<TLSSocket>).encrypted === true,
    isClosing: () => isClosing(request.socket),
    remoteAddress: request.socket.remoteAddress,
    header: (name) => nodeHeader(request, name),
    headerNames: () => Object.keys(request.headers),
    // Some parsers set an empty body for types that they leave alone.
    // The rest of one that is too long is read and dropped, so that the client sees the answer.
    body: async (most) => (request.readableEnded ? parsedBody(parsed) : readBody(request.iterator({ destroyOnReturn: false }), most)),
  };
}

function parsedBody(parsed: unknown): Body {
  return typeof parsed === "string" || parsed instanceof Uint8Array ? { text: String(parsed) } : { parsed };
}

/** The text of a body; undefined if it is longer than `most` bytes. */
export async function readBody(chunks: AsyncIterable<Uint8Array>, most: number): Promise<Body | undefined> {
  const read: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > most) return undefined;
    read.push(chunk);
  }
  return { text: new TextDecoder().decode(Buffer.concat(read)) };
}

/** Whether the server of a connection takes no new ones. HTTP/2 has the server on the session's socket only. */
export function isClosing(socket: object): boolean {
  return (socket as { readonly server?: { readonly listening?: boolean } }).server?.listening === false;
}

/** Whether the client has left, for example while `authorize` was asked. The response of HTTP/2 does not say. */
function hasGone(request: IncomingMessage, response: ServerResponse): boolean {
  return response.destroyed || (request as { readonly stream?: { readonly destroyed?: boolean } }).stream?.destroyed === true;
}

export function sendReply(request: IncomingMessage, response: ServerResponse, { status, headers, body }: Reply): void {
  if (response.headersSent || response.writableEnded || hasGone(request, response)) {
    if (typeof body !== "string") void body.cancel();
    return;
  }
  response.statusCode = status;
  for (const [name, value] of headers) response.setHeader(name, value);
  if (typeof body === "string") {
    response.end(body);
    return;
  }
  response.flushHeaders?.();
  // A client that leaves is no error.
  const events = Readable.fromWeb(body as WebStream);
  pipeline(events, response, () => undefined);
  // The `compression` middleware holds back what is not flushed.
  events.on("data", () => (response as { flush?(): void }).flush?.());
}
