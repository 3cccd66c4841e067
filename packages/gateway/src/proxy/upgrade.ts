import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";
import { pairsOf } from "./message.js";
import { hasBody } from "./upstream.js";

/** Whether a request asks for a WebSocket. */
export function isHandshake({ method, headers }: IncomingMessage): boolean {
  return method === "GET" && headers.upgrade?.toLowerCase() === "websocket";
}

/** Node from 24.9 on asks this, and reads the body of a request whose upgrade is ignored. */
export const upgrades = { shouldUpgradeCallback: (request: IncomingMessage): boolean => isHandshake(request) || !hasBody(request) };

/**
 * Handles a request that asks for another protocol (`Upgrade: h2c`, which Java's client sends) as if it had not asked: a server may ignore
 * an upgrade (RFC 9110 §7.8). Node has stopped parsing the connection, so it gets the same bytes again without that wish.
 */
export function withoutUpgrade(server: Server, request: IncomingMessage, socket: Socket, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = request;
  let text = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (const [name, value] of pairsOf(rawHeaders)) {
    const lower = name.toLowerCase();
    if (lower === "upgrade" || lower === "http2-settings") continue;
    text += `${name}: ${lower === "connection" ? withoutWish(value) : value}\r\n`;
  }
  socket.unshift(Buffer.concat([Buffer.from(`${text}\r\n`, "latin1"), head]));
  server.emit("connection", socket);
}

function withoutWish(connection: string): string {
  return connection.replace(/(?:^|,)\s*(?:upgrade|http2-settings)\s*(?=,|$)/gi, "").replace(/^\s*,/, "");
}
