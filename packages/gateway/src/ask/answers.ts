import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Header, Outcome } from "@floodgate/core/adapter";
import type { Preset } from "./presets.js";

/** The header with the status of a denial, for gateways that take 403 only. nginx copies it with `auth_request_set`. */
const statusHeader = "X-Floodgate-Status";

/** Answers a decision in the way that the gateway understands. */
export function answer(response: ServerResponse, preset: Preset, outcome: Outcome, isDraining: boolean): void {
  const headers = rawHeaders(outcome.headers);
  if (isDraining) headers.push("Connection", "close");
  if (outcome.action === "pass") {
    // A response with status 204 has no length.
    if (preset.allowed === 200) headers.push("Content-Length", "0");
    response.writeHead(preset.allowed, headers).end();
    return;
  }
  if (preset.denied !== undefined) {
    // The gateway discards the body.
    headers.push(statusHeader, `${outcome.status}`, "Content-Length", "0");
    response.writeHead(preset.denied, headers).end();
    return;
  }
  const { text, contentType } = outcome.body;
  headers.push("Content-Type", contentType, "Content-Length", `${Buffer.byteLength(text)}`);
  response.writeHead(outcome.status, headers).end(text);
}

/** Names and values in turn, which `writeHead` takes as they are. Allocated in its full length, because most answers need no more. */
function rawHeaders(headers: readonly Header[]): string[] {
  const raw = new Array<string>(headers.length * 2);
  let at = 0;
  for (const { name, value } of headers) {
    raw[at++] = name;
    raw[at++] = value;
  }
  return raw;
}

/**
 * Answers an ask that was not decided.
 * @param status what is wrong. If a client may have caused it, the answer is 403: a gateway may take any other status for an error of ours, and
 * let the request pass.
 */
export function refuse(response: ServerResponse, status: number, denies: boolean, reason: string, closes: boolean): void {
  const headers = {
    "Content-Type": "text/plain; charset=utf-8",
    "Content-Length": Buffer.byteLength(reason),
    "Cache-Control": "no-store",
    ...(denies && { [statusHeader]: status }),
    ...(closes && { Connection: "close" }),
  };
  response.writeHead(denies ? 403 : status, headers).end(reason);
}

/**
 * How long we read and drop what a gateway still sends after a denial, in milliseconds. If we closed at once, the gateway would get a reset
 * in place of the answer, and let the request pass.
 */
const dropMs = 5000;

/** Denies a request that Node's parser refuses, or has no response for. Closes the connection. Node calls it again for all that follows. */
export function denyRaw(socket: Socket, status: number): void {
  if (!socket.writable) return;
  // After CONNECT, Node listens no more, and the error of a client that resets its connection would end the process.
  socket.on("error", () => undefined);
  socket.end(`HTTP/1.1 403 Forbidden\r\n${statusHeader}: ${status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), dropMs);
  socket.once("close", () => clearTimeout(timer));
}
