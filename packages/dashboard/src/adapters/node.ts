import type { IncomingMessage, ServerResponse } from "node:http";
import type { Writable } from "node:stream";
import type { TLSSocket } from "node:tls";
import { nodeHeader } from "@floodgate/core/adapter";
import type { Body, Reply, Sink, View } from "../routes/view.js";

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
const maxUnread = 1_000_000;

/** Whether the client has left, for example while `authorize` was asked: then no `close` comes any more. */
function hasGone(request: IncomingMessage, output: Output): boolean {
  // The response of HTTP/2 does not say.
  return output.destroyed || (request as { readonly stream?: { readonly destroyed?: boolean } }).stream?.destroyed === true;
}

export function sendReply(request: IncomingMessage, response: ServerResponse, { status, headers, body }: Reply): void {
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

/** The used part of a response, and of a stream that is piped to one. */
type Output = Pick<Writable, "write" | "end" | "destroy" | "once" | "writableEnded" | "destroyed" | "writableLength"> & {
  /** The `compression` middleware holds back what is not flushed. */
  readonly flush?: () => void;
};

function sinkOf(request: IncomingMessage, output: Output): Sink {
  // Node's own; HTTP/2 has it on the session's socket only.
  const server = (request.socket as { readonly server?: { readonly listening?: boolean } }).server;
  return {
    write(text) {
      if (output.writableEnded || output.destroyed) return;
      output.write(text);
      output.flush?.();
    },
    end() {
      // What such a client has not read would stay in memory until it leaves.
      if (output.writableLength > maxUnread) output.destroy();
      else output.end();
    },
    onClose(closed) {
      if (hasGone(request, output)) closed();
      else output.once("close", closed);
    },
    get isStale() {
      return output.writableLength > maxUnread || server?.listening === false;
    },
  };
}
