import type { RuleSet } from "@floodgate/core/rules";
import type { Settings } from "../config/settings.js";
import type { Service } from "./service.js";

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

/** Starts one part. */
export interface StartPart {
  /** Returns undefined if the settings turn the part off. */
  (service: Service): Promise<Part | undefined>;
  /**
   * Refuses rules that the part cannot keep: at the start, and in each new version.
   * @throws FloodgateError with the path of the rule in `at`.
   */
  checkRules?(rules: RuleSet, settings: Settings): void;
}
