import { once } from "node:events";
import { connect } from "node:net";
import { expect } from "vitest";

/** Asserts that all `count` servers in a demo's output have stopped. */
export async function expectAllStopped(printed: string, servers: number): Promise<void> {
  const ports = [...printed.matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, port]) => Number(port));
  expect(ports).toHaveLength(servers);
  for (const port of ports) await expect.poll(() => takesConnections(port), { timeout: 10_000 }).toBe(false);
}

/** Whether something listens on a port of 127.0.0.1. */
export async function takesConnections(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
