import { chmodSync } from "node:fs";
import { lstat, unlink } from "node:fs/promises";
import type { Server } from "node:http";
import { connect } from "node:net";
import { setImmediate } from "node:timers/promises";
import { FloodgateError } from "@floodgate/core";
import { isUnix, type ListenAddress, parseAddress } from "../config/address.js";

/** A server of a running service: the decision server, the JSON API, Envoy's service, the proxy, the admin server. */
export interface RunningServer {
  /** The setting of its address. */
  readonly name: "listen" | "apiListen" | "rls" | "admin";
  /** `"127.0.0.1:8080"` with the real port, or `"unix:/path"`. */
  readonly address: string;
  /** `"http://127.0.0.1:8080"`, or the address of the socket. */
  readonly url: string;
  /** Accepts no more connections, closes idle ones, and waits for requests in flight. After `closeMs`, it closes all connections. */
  close(): Promise<void>;
}

/**
 * Makes a server listen on `"host:port"` or `"unix:/path"`. A socket file that a dead process left is replaced.
 * @param closeMs how long requests in flight may take to end when the server closes.
 * @param socketMode the permissions of a Unix socket. Default: those that the umask leaves.
 * @throws FloodgateError `FLOODGATE_CANNOT_LISTEN` if the address is taken, not allowed or not one of this machine.
 */
export async function listen(
  server: Server,
  name: RunningServer["name"],
  address: string,
  closeMs: number,
  socketMode?: number,
): Promise<RunningServer> {
  // The settings were checked.
  const parsed = parseAddress(address) as ListenAddress;
  if ("path" in parsed) await removeStale(parsed.path, address, name);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(parsed, () => {
      server.off("error", reject);
      resolve();
    });
    // The socket exists at once. Nobody is served before the permissions are set.
    if ("path" in parsed && socketMode !== undefined && server.listening) chmodSync(parsed.path, socketMode);
  }).catch((error: NodeJS.ErrnoException) => {
    throw unlistenable(address, name, reasonOf(error, parsed), error);
  });
  const actual = actualAddress(server, parsed);
  return { name, address: actual, url: isUnix(actual) ? actual : `http://${actual}`, close: () => closeServer(server, closeMs) };
}

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "another process listens there. Stop it, or choose another address",
  EACCES: "this user may not. Choose a port of 1024 or more",
  EADDRNOTAVAIL: "this machine has no such address",
  ENOTFOUND: "the host name is unknown",
};

function reasonOf({ code = "", message }: NodeJS.ErrnoException, parsed: ListenAddress): string {
  // Node gives the same code for a directory that does not exist.
  if ("path" in parsed && (code === "EACCES" || code === "ENOENT")) {
    return "this user may not write to the directory of the socket, or it does not exist";
  }
  return reasons[code] ?? message;
}

export function unlistenable(address: string, what: string, reason: string, cause?: unknown): FloodgateError {
  return new FloodgateError("FLOODGATE_CANNOT_LISTEN", `\`${what}\`: cannot listen on ${address}: ${reason}.`, { cause });
}

function actualAddress(server: Server, parsed: ListenAddress): string {
  const found = server.address();
  if ("path" in parsed || found === null || typeof found === "string") return `unix:${"path" in parsed ? parsed.path : found}`;
  return found.family === "IPv6" ? `[${found.address}]:${found.port}` : `${found.address}:${found.port}`;
}

/** Removes a socket file that nobody listens on. A file that is no socket stays. */
export async function removeStale(path: string, address: string, what: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined) return;
  if (!found.isSocket()) throw unlistenable(address, what, "a file that is not a socket has this path. Remove it, or choose another path");
  const isAlive = await new Promise<boolean>((resolve) => {
    const probe = connect(path, () => {
      probe.destroy();
      resolve(true);
    }).on("error", ({ code }: NodeJS.ErrnoException) => resolve(code !== "ECONNREFUSED"));
  });
  if (!isAlive) await unlink(path).catch(() => undefined);
}

/** How often connections that have become idle are closed while a server closes. */
const idleMs = 50;

async function closeServer(server: Server, closeMs: number): Promise<void> {
  const deadline = setTimeout(() => server.closeAllConnections(), closeMs);
  await acceptWaiting(server);
  await new Promise<void>((resolve) => {
    // A connection whose request ends after `close` would stay open for further requests.
    const idle = setInterval(() => server.closeIdleConnections(), idleMs);
    server.close(() => {
      clearInterval(idle);
      resolve();
    });
    server.closeIdleConnections();
  });
  clearTimeout(deadline);
}

/** The most connections that wait in the kernel: Node's default. */
const maxWaiting = 511;

/**
 * Accepts the connections that wait in the kernel, which would reset them when the server closes: their clients believe that they are
 * connected. A queue of length 0 lets no more of them wait, so clients that come now try again later, and are refused then.
 */
async function acceptWaiting(server: Server): Promise<void> {
  // Node has no public way to shorten the queue.
  const { _handle: handle } = server as { _handle?: { listen?(backlog: number): unknown } | null };
  if (handle?.listen === undefined) return;
  handle.listen(0);
  let isQuiet = false;
  const accepted = (): void => {
    isQuiet = false;
  };
  server.on("connection", accepted);
  // Clients that never cease must not keep the server open.
  for (let turns = 0; !isQuiet && turns < maxWaiting; turns++) {
    isQuiet = true;
    // In a turn of its loop, Node may accept only one. The first turn may end before it looks for any.
    await setImmediate();
    await setImmediate();
  }
  server.off("connection", accepted);
}
