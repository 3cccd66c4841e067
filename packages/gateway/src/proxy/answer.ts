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

/** The upstream took too long. */
export class UpstreamTimeout extends Error {
  constructor(phase: "connect" | "answer") {
    super(phase === "connect" ? "The upstream did not accept a connection in time." : "The upstream did not answer in time.");
  }
}

/** The upstream's answer is valid HTTP, but none to the request. */
export class InvalidAnswer extends Error {}

/** What the client is told if the upstream fails. Addresses and details of the network stay in the log. */
export function failureOf(error: unknown): readonly [status: number, detail: string] {
  if (error instanceof UpstreamTimeout) return [504, error.message];
  const code = codeOf(error);
  // Node's parser refuses to read it, or its writer to pass it on.
  if (error instanceof InvalidAnswer || /^(?:HPE_|ERR_HTTP_|ERR_INVALID_)/.test(code))
    return [502, "The upstream's answer is not valid HTTP."];
  if (unreachable.has(code)) return [502, "The upstream cannot be reached."];
  if (code === "ETIMEDOUT") return [504, "The upstream did not accept a connection in time."];
  if (/CERT|TLS|SSL|SIGNATURE|INVALID_(?:CA|PURPOSE)/.test(code))
    return [502, "The upstream's certificate is not valid, or it does not speak TLS."];
  return [502, "The upstream closed the connection before it answered."];
}

const unreachable = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOENT",
  "EACCES",
  "EADDRNOTAVAIL",
  "EMFILE",
]);

export function codeOf(error: unknown): string {
  return `${(error as NodeJS.ErrnoException | undefined)?.code ?? ""}`;
}

/** What failures are grouped by in the log: a dead upstream fails every request. */
export function reasonOf(error: unknown): string {
  return error instanceof UpstreamTimeout ? error.message : codeOf(error) || (error as Error).message;
}
