import type { RedisServer } from "@floodgate/test-servers";
import { general } from "../src/script.js";

/** A command that a client sent. */
export interface Command {
  /** In upper case. */
  readonly name: string;
  /** The keys of a script run; empty for other commands. */
  readonly keys: readonly string[];
  /** Whether it runs a lean script by its hash. */
  readonly isLean: boolean;
}

/**
 * Runs `act`; returns its result and the commands that the server received meanwhile, in order. Announcements of changes, and reads of
 * them, are left out: changes.test.ts counts these.
 */
export async function watched<T>(server: RedisServer, act: () => T): Promise<{ answer: Awaited<T>; commands: Command[] }> {
  const monitor = await server.monitor();
  try {
    const answer = await act();
    const lines = await monitor.lines();
    const sent = lines.filter((line) => !/^\S+ \[\d+ lua\]/.test(line)).map(commandOf);
    return { answer, commands: sent.filter(({ keys }) => !keys[0]?.endsWith(":changes")) };
  } finally {
    monitor.stop();
  }
}

export function namesOf(commands: readonly Command[]): string[] {
  return commands.map(({ name }) => name);
}

/** The number of script runs on a server so far. Announcements of changes and reads of them have no hash, and do not count. */
export async function runsOf(server: RedisServer): Promise<number> {
  const { cmdstat_evalsha: bySha } = await server.info("commandstats");
  return Number(/calls=(\d+)/.exec(bySha ?? "")?.[1] ?? 0);
}

/** The number of script runs during `act`. */
export async function runsDuring(server: RedisServer, act: () => unknown): Promise<number> {
  const before = await runsOf(server);
  await act();
  return (await runsOf(server)) - before;
}

function commandOf(line: string): Command {
  const [name = "", script = "", count, ...rest] = [...line.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, word = ""]) => word);
  if (!/^eval/i.test(name)) return { name: name.toUpperCase(), keys: [], isLean: false };
  const isLean = script !== general.sha && script.length === 40;
  return { name: name.toUpperCase(), keys: rest.slice(0, Number(count)), isLean };
}
