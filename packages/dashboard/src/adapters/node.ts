import type { IncomingMessage, ServerResponse } from "node:http";
import { nodeHeader } from "@floodgate/core/adapter";
import type { Answer, Body, Sink, View } from "../routes/view.js";

interface NodeView {
  readonly request: IncomingMessage;
  readonly identity: object;
  /** The part of the URL below the mount path. */
  readonly url: string;
  /** What a body parser in front has made of the body. */
  readonly parsed: unknown;
}

export function nodeView({ request, identity, url, parsed }: NodeView): View {
  const queryAt = url.indexOf("?");
  return {
    identity,
    method: request.method ?? "",
    path: queryAt < 0 ? url : url.slice(0, queryAt),
    query: queryAt < 0 ? "" : url.slice(queryAt + 1),
    httpVersion: request.httpVersion,
    remoteAddress: request.socket.remoteAddress,
    header: (name) => nodeHeader(request, name),
    headerNames: () => Object.keys(request.headers),
    // Some parsers set an empty body for types that they leave alone.
    body: async (most) => (request.readableEnded ? parsedBody(parsed) : readBody(request, most)),
  };
}

function parsedBody(parsed: unknown): Body {
  return typeof parsed === "string" || parsed instanceof Uint8Array ? { text: String(parsed) } : { parsed };
}

function readBody(request: IncomingMessage, most: number): Promise<Body | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      // The rest is read and dropped, so that the client sees the answer.
      if (size > most) resolve(undefined);
      else chunks.push(chunk);
    });
    request.on("end", () => resolve({ text: Buffer.concat(chunks).toString("utf8") }));
    request.on("error", reject);
    request.on("close", () => reject(new Error("The client has disconnected.")));
  });
}

/** A client that reads too slowly is cut off at this many bytes. Its browser connects again. */
const mostUnread = 1_000_000;

/** Sends an answer. */
export function sendAnswer(request: IncomingMessage, response: ServerResponse, { status, headers, body }: Answer): void {
  if (response.headersSent || response.writableEnded) return;
  response.statusCode = status;
  for (const [name, value] of headers) response.setHeader(name, value);
  if (typeof body === "string") {
    response.end(body);
    return;
  }
  response.flushHeaders?.();
  body(sinkOf(request, response));
}

function sinkOf(request: IncomingMessage, response: ServerResponse): Sink {
  // Node's own; HTTP/2 has it on the session's socket only.
  const server = (request.socket as { readonly server?: { readonly listening?: boolean } }).server;
  return {
    write(text) {
      if (response.writableEnded || response.destroyed) return;
      response.write(text);
      // The `compression` middleware holds back what is not flushed.
      (response as { flush?: () => void }).flush?.();
    },
    end: () => response.end(),
    onClose: (closed) => response.once("close", closed),
    get isStale() {
      return response.writableLength > mostUnread || server?.listening === false;
    },
  };
}
