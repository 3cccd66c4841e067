/** One run of the script. */
export interface Run {
  /** By its SHA-1, or by its source where the server does not know it. */
  readonly command: "EVALSHA" | "EVAL";
  /** What follows the command: the script, how many keys, the keys, the arguments. */
  readonly args: string[];
  readonly firstKey: string;
}

/** What the store needs of a client library. The client is the user's: it is never closed nor set up anew. */
export interface RedisClient {
  /** Whether keys have slots, and a run's must share one. */
  readonly isCluster: boolean;
  /** Whether a command sent now goes out now. What waits in a library's own queue may be sent long after anyone waits for it. */
  readonly isReady: boolean;
  /** Lets a client that connects with its first command do so; answers what is wrong where it can never be ready by itself. */
  wake(): string | undefined;
  /** Sends runs for one server, in one write where the library can; an answer each. */
  send(runs: readonly Run[]): Promise<unknown>[];
  /** The slot of a key; 0 where there is no Cluster. */
  slotOf(key: string): number;
  /** Names the server of a slot, or answers "" where there is one only, or none is known yet. */
  serverOf(slot: number): string;
}
