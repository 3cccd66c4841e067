import { type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { expect } from "vitest";

/**
 * Waits until what a program has printed matches, passes that on, and stops the program; `detached` with all that it has started. Answers its
 * exit code.
 */
export async function withProgram(
  [command = process.execPath, ...args]: readonly string[],
  ready: RegExp,
  { signal = "SIGTERM", ...options }: Pick<SpawnOptions, "cwd" | "env" | "detached"> & { readonly signal?: NodeJS.Signals },
  use: (printed: string) => Promise<void>,
): Promise<number | null> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
  let printed = "";
  child.stdout.on("data", (chunk) => {
    printed += chunk;
  });
  let complaints = "";
  child.stderr.on("data", (chunk) => {
    complaints += chunk;
  });
  const ended = once(child, "exit");
  try {
    const early = ended.then(([code]) => Promise.reject(new Error(`It ended with ${code}, and printed: ${printed}`)));
    await Promise.race([expect.poll(() => printed, { timeout: 60_000 }).toMatch(ready), early]);
    await use(printed);
  } catch (error) {
    console.error(complaints);
    throw error;
  } finally {
    // A signal may have ended it, without a code.
    if ((child.exitCode ?? child.signalCode) === null) process.kill((options.detached === true ? -1 : 1) * (child.pid as number), signal);
    await ended;
  }
  return child.exitCode;
}

/** The address in what a program printed. */
export function urlIn(printed: string): string {
  return /http:\/\/127\.0\.0\.1:\d+/.exec(printed)?.[0] ?? "no address";
}

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
