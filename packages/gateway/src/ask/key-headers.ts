import { type CompiledRule, parseKeyName } from "@floodgate/core/rules";
import type { GatewayRequest } from "../service/request.js";

type Rules = readonly CompiledRule<GatewayRequest>[];

/** The headers that keys are read from, by the settings and by the active rules. */
export class KeyHeaders {
  readonly #ofSettings: readonly string[];
  #rules: Rules | undefined;
  #names: ReadonlySet<string> = new Set();

  /** @param sources the settings `keys` and `plan`: `header:x-user`, `jwt:tenant`. */
  constructor(sources: readonly string[]) {
    this.#ofSettings = sources.map((source) => headerOf(source) ?? "authorization");
  }

  /** The names in lower case. */
  of(rules: Rules): ReadonlySet<string> {
    if (rules !== this.#rules) {
      this.#rules = rules;
      this.#names = new Set([...this.#ofSettings, ...rules.flatMap(({ options }) => namesIn(options.key))]);
    }
    return this.#names;
  }
}

function namesIn(key: unknown): string[] {
  const parts: readonly unknown[] = Array.isArray(key) ? key : [key];
  return parts.flatMap((part) => (typeof part === "string" ? (headerOf(parseKeyName(part).name) ?? []) : []));
}

function headerOf(source: string): string | undefined {
  return source.startsWith("header:") ? source.slice("header:".length).toLowerCase() : undefined;
}
