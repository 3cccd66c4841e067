/** One run of the script. */
export interface Run {
  /** By SHA-1, or by source if the server does not have the script. */
  readonly command: "EVALSHA" | "EVAL";
  /** The script, the number of keys, the keys, the arguments. */
  readonly args: string[];
  readonly firstKey: string;
}

/** What the store needs from a client library. The client belongs to the user: it is never closed or reconfigured. */
export interface RedisClient {
  /** The number of its database and what it writes before each key: processes with the same ones have the same keys. */
  readonly place: { readonly database: number; readonly keyPrefix: string };
  /** Whether all keys of a run must be in one slot. */
  readonly isCluster: boolean;
  /** Whether a command is sent at once. A command in the library's offline queue may be sent long after its deadline. */
  readonly isReady: boolean;
  /** Connects a lazy client. Returns the problem if the client can never become ready by itself. */
  wake(): string | undefined;
  /** Sends runs to one server, in one write if the library can. Returns a promise for each reply. */
  send(runs: readonly Run[]): Promise<unknown>[];
  /** The slot of a key; 0 without a Cluster. */
  slotOf(key: string): number;
  /** The address of the server of a slot; "" if there is only one or none is known yet. */
  serverOf(slot: number): string;
}
