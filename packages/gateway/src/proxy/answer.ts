import { type OutgoingHttpHeaders, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Body, Header } from "@floodgate/core/adapter";

/** An answer of the proxy's own: the upstream did not answer, or was not asked. */
export interface OwnAnswer {
  readonly status: number;
  readonly headers: readonly Header[];
  readonly body: Body;
}

const noStore: Header = { name: "Cache-Control", value: "no-store" };

/** A mistake of the client or the upstream, as problem details (RFC 9457). */
export function problem(status: number, detail: string, ...headers: Header[]): OwnAnswer {
  const text = JSON.stringify({ type: "about:blank", title: STATUS_CODES[status], status, detail });
  return { status, headers: [noStore, ...headers], body: { text, contentType: "application/problem+json" } };
}

/** Sends an answer. A response that has begun is left as it is. */
export function send(response: ServerResponse, answer: OwnAnswer, close: boolean): void {
  if (response.headersSent || response.destroyed) return;
  const headers = headersOf(answer);
  // Node chooses the header otherwise, and ends the connection if the client asked for it.
  if (close) headers["Connection"] = "close";
  // Without a reason, Node would send the one of an upstream's answer that could not be sent.
  response.writeHead(answer.status, STATUS_CODES[answer.status], headers).end(answer.body.text);
}

/** Sends an answer on a connection that is not Node's any more (or not yet): it has asked for an upgrade, or sent no valid request. */
export function sendOnSocket(socket: Socket, answer: OwnAnswer): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  let head = `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ""}\r\n`;
  for (const [name, value] of Object.entries(headersOf(answer))) head += `${name}: ${value}\r\n`;
  socket.end(`${head}Date: ${new Date().toUTCString()}\r\nConnection: close\r\n\r\n${answer.body.text}`);
  // The rest of what the client sends is not read. Without this, a client that never closes would keep the connection.
  socket.once("finish", () => socket.destroy());
}

function headersOf({ headers, body }: OwnAnswer): OutgoingHttpHeaders {
  const all: OutgoingHttpHeaders = { "Content-Type": body.contentType, "Content-Length": Buffer.byteLength(body.text) };
  for (const { name, value } of headers) all[name] = value;
  return all;
}
