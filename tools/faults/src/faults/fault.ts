import type { Client } from "./clients.js";

/** A key by which a client shows that it is connected; in a Cluster, what fails is the master of its slot. */
export const probe = "probe";

/** Something that befalls Redis, or the way to it. */
export interface Fault {
  readonly name: string;
  /** When Redis forgets what it has counted. */
  readonly forgets?: "when struck" | "when lifted";
  /** Redis goes on deciding, or soon does again, although answers get lost: what it charges then it cannot tell. */
  readonly decides?: boolean;
  /** It is there before anybody has connected. */
  readonly atBoot?: boolean;
  /** It may be over before a decision could wait no longer. */
  readonly brief?: boolean;
  start(): Promise<Scene>;
}

/** Servers, their clients, and what happens to them. */
export interface Scene {
  readonly clients: readonly Client[];
  /** Makes it fail: the fault is there when it has resolved. */
  strike(): unknown;
  /** Makes it whole again. */
  lift(): unknown;
  stop(): Promise<unknown>;
}
