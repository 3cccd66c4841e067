import { slotOf } from "./slot.js";

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
  /** What the client writes before each key. */
  readonly keyPrefix: string;

  /** Whether all keys of a run must be in one slot. */
  readonly isCluster: boolean;

  constructor(keyPrefix?: string | Buffer | null, isCluster = false) {
    this.keyPrefix = String(keyPrefix ?? "");
    this.isCluster = isCluster;
  }

  /** The number of its database. */
  get database(): number {
    return 0;
  }

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
  slotOf(key: string): number {
    return this.isCluster ? slotOf(this.keyPrefix + key) : 0;
  }

  /** The address of the server that holds a key; "" if there is only one or none is known yet. */
  serverOf(_key: string): string {
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
