import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** Where all servers of this package listen. */
export const loopback = "127.0.0.1";

/** A Cluster node's bus listens this far above its port. */
const busOffset = 10_000;

/**
 * A port of 127.0.0.1 that is free now, as is the one 10,000 above it. It lies below those that systems give to outgoing
 * connections, so that a server that stopped finds it free again.
 */
export async function sparePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + randomInt(busOffset);
    if ((await isFree(port)) && (await isFree(port + busOffset))) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, loopback);
  try {
    await once(server, "listening");
  } catch {
    return false;
  }
  server.close();
  await once(server, "close");
  return true;
}
