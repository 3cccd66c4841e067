import type { RedisServer } from "@floodgate/test-servers";

/** A command that a client sent. */
export interface Command {
  /** In upper case. */
  readonly name: string;
  /** The state keys of a script run, without the keys of the blocks; empty for other commands. */
  readonly keys: readonly string[];
}

/** Runs `act`; returns its result and the commands that the server received meanwhile, in order. */
export async function watched<T>(server: RedisServer, act: () => T): Promise<{ answer: Awaited<T>; commands: Command[] }> {
  const monitor = await server.monitor();
  try {
    const answer = await act();
    const lines = await monitor.lines();
    return { answer, commands: lines.filter((line) => !/^\S+ \[\d+ lua\]/.test(line)).map(commandOf) };
  } finally {
    monitor.stop();
  }
}

export function namesOf(commands: readonly Command[]): string[] {
  return commands.map(({ name }) => name);
}

/** The number of script runs on a server so far. */
export async function runsOf(server: RedisServer): Promise<number> {
  const { cmdstat_evalsha: bySha, cmdstat_eval: bySource } = await server.info("commandstats");
  return [bySha, bySource].reduce((sum, stat) => sum + Number(/calls=(\d+)/.exec(stat ?? "")?.[1] ?? 0), 0);
}

/** The number of script runs during `act`. */
export async function runsDuring(server: RedisServer, act: () => unknown): Promise<number> {
  const before = await runsOf(server);
  await act();
  return (await runsOf(server)) - before;
}

function commandOf(line: string): Command {
  const [name = "", , count, ...rest] = [...line.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, word = ""]) => word);
  // The script's fourth argument is the number of its state keys: see lua/prelude.lua.
  const keys = /^eval/i.test(name) ? rest.slice(0, Number(rest[Number(count) + 3])) : [];
  return { name: name.toUpperCase(), keys };
}
