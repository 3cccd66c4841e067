/** One run of the script. */
export interface Run {
  /** By SHA-1, or by source if the server does not have the script. */
  readonly command: "EVALSHA" | "EVAL";
  /** The script, the number of keys, the keys, the arguments. */
  readonly args: string[];
  readonly firstKey: string;
}

/**
 * What the store needs from a client library. The client belongs to the user: it is never closed or reconfigured. What is not abstract is right
 * for a single server.
 */
export abstract class RedisClient {
  /** The number of its database and what it writes before each key: processes with the same ones have the same keys. */
  get place(): { readonly database: number; readonly keyPrefix: string } {
    return { database: 0, keyPrefix: "" };
  }

  /** Whether all keys of a run must be in one slot. */
  readonly isCluster: boolean = false;

  /** Whether commands arrive in the order in which they were sent. If not, each waits for the one before. */
  readonly keepsOrder: boolean = true;

  /** Whether a command is sent at once. A command in the library's offline queue may be sent long after its deadline. */
  abstract get isReady(): boolean;

  /** Connects a lazy client. Returns the problem if the client can never become ready by itself. */
  wake(): string | undefined {
    return undefined;
  }

  /** Sends runs to one server, in one write if the library can. Returns a promise for each reply. */
  abstract send(runs: readonly Run[]): Promise<unknown>[];

  /** The slot of a key; 0 without a Cluster. */
  slotOf(_key: string): number {
    return 0;
  }

  /** Groups what the script does by the slots of its keys, in order. */
  bySlot<T extends { readonly redisKey: string }>(all: readonly T[]): (readonly T[])[] {
    if (!this.isCluster || all.length === 1) return [all];
    const slots = new Map<number, T[]>();
    for (const each of all) {
      const slot = this.slotOf(each.redisKey);
      const known = slots.get(slot);
      if (known === undefined) slots.set(slot, [each]);
      else known.push(each);
    }
    return [...slots.values()];
  }

  /** The address of the server of a slot; "" if there is only one or none is known yet. */
  serverOf(_slot: number): string {
    return "";
  }
}

/** A run whose keys have what the client writes before each. For libraries that leave the keys of raw commands as they are. */
export function prefixed(run: Run, keyPrefix: string): Run {
  const { command, args, firstKey } = run;
  if (keyPrefix === "") return run;
  return {
    command,
    args: args.map((arg, i) => (i > 1 && i < 2 + Number(args[1]) ? keyPrefix + arg : arg)),
    firstKey: keyPrefix + firstKey,
  };
}
