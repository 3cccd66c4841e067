import type { Client } from "./clients.js";

/** A key that clients read to prove that they are connected. In a Cluster, the master of its slot is the one that fails. */
export const probe = "probe";

/** A failure of Redis or of the connection to it. */
export interface Fault {
  readonly name: string;
  /** When Redis loses its counts. */
  readonly forgets?: "when struck" | "when lifted";
  /** Whether Redis may keep charging while its replies are lost. */
  readonly decides?: boolean;
  /** Whether the fault begins before any client has connected. */
  readonly atBoot?: boolean;
  /** Whether the fault may end before a decision times out. */
  readonly brief?: boolean;
  start(): Promise<Scene>;
}

/** Servers, their clients, and the fault. */
export interface Scene {
  readonly clients: readonly Client[];
  /** Starts the fault, and resolves when it is active. */
  strike(): unknown;
  /** Ends the fault. */
  lift(): unknown;
  stop(): Promise<unknown>;
}
