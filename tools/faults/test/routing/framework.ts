import type { RequestListener } from "node:http";
import type { RateLimitOptions } from "@floodgate/core/adapter";
import type { Abilities, Level } from "./plan.js";

export type Limit = RateLimitOptions<unknown>;

/** The parts to build an app from. */
export interface Parts {
  readonly limit: Limit;
  /** Called with the name of each handler that a request reaches. Handlers pass the request on. */
  readonly reach: (name: string) => void;
  /** The folder with the files. */
  readonly root: string;
}

export interface Framework {
  readonly name: string;
  readonly abilities: Abilities;
  /** Whether requests come over HTTP/2 too. */
  readonly http2: boolean;
  /** Whether a request may also count under rules of other paths, because the framework does not tell what its mounts remove. */
  readonly overcounts?: boolean;
  /** Characters that make another route of a pattern than of a rule's path. */
  readonly otherwise?: RegExp;
  /** Undefined if the framework cannot build such an app. */
  build(plan: Level, parts: Parts): RequestListener | undefined;
}
