import type { Service } from "./service/service.js";

/** A server of a running service: the decision server, the JSON API, the proxy, the admin server. */
export interface Part {
  /** The setting of its address: `"listen"`, `"admin"`. */
  readonly name: string;
  /** `"127.0.0.1:8080"` with the real port, or `"unix:/path"`. */
  readonly address: string;
  readonly url: string;
  /** Accepts no more requests, and waits for those in flight, at most `closeMs`. */
  close(): Promise<void>;
}

/** Starts one part. Undefined if the settings do not want it. */
export type StartPart = (service: Service) => Promise<Part | undefined>;
