import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** The address of all servers of this package. */
export const loopback = "127.0.0.1";

/** A Cluster node's bus listens this far above its port. */
const busOffset = 10_000;

/**
 * A free port of 127.0.0.1; the port 10,000 above it is free too. It is below the ephemeral ports, so that it is still free when a
 * server restarts.
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
