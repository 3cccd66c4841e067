import type { CostFunction, Key, KeyFunction } from "@floodgate/core";
import type { RateLimitOptions, RequestReader } from "@floodgate/core/adapter";
import { isBuiltInKey, type PlainRule, parseKeyName, type RuleSet } from "@floodgate/core/rules";
import { Failure } from "./failure.js";

/** A request as the command line tells it. */
export interface AskedRequest {
  readonly method: string;
  readonly path: string;
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly ip: string | undefined;
  readonly route: string | undefined;
  /** What the app's own keys answer. */
  readonly keys: Readonly<Record<string, Key>>;
}

export const askedReader: RequestReader<AskedRequest> = {
  identity: (request) => request,
  method: ({ method }) => method,
  path: ({ path }) => path,
  header: ({ headers }, name) => headers[name],
  remoteAddress: ({ ip }) => ip,
  clientIp: ({ ip }) => ip,
  // The address is the client's, whatever headers it has.
  trustsProxy: () => true,
  route: ({ route }) => route,
};

/** The names of what a rule counts by, as the rules say them. */
export function markedKeyNames({ key = "ip" }: PlainRule): readonly string[] {
  return typeof key === "string" ? [key] : key;
}

/** The names of what a rule counts by, without the mark of a secret. */
export function keyNames(rule: PlainRule): readonly string[] {
  return markedKeyNames(rule).map((name) => parseKeyName(name).name);
}

/** Whether only digests of what a rule counts by, or of a part of it, are stored and shown. */
export function hasSecretKey(rule: PlainRule): boolean {
  return markedKeyNames(rule).some((name) => parseKeyName(name).secret);
}

/** Whether a key is one that the app defines. */
export function isOwnKey(name: string): boolean {
  return !isBuiltInKey(name);
}

/** Whether a rule counts requests without its key by their address. */
export function fallsBackToIp(rule: PlainRule): boolean {
  const { key = "ip", onMissingKey = "ip" } = rule;
  return key !== "ip" && onMissingKey === "ip" && keyNames(rule).some((name) => name !== "global" && name !== "route");
}

/** The options of the app that these rules are for, as far as the command line knows it. */
export function appOptions(
  { rules }: RuleSet,
  { plan, ipv6Prefix }: { plan?: string | undefined; ipv6Prefix: number },
): Omit<RateLimitOptions<AskedRequest, string>, "rules"> {
  const keys = rules.flatMap(keyNames).filter(isOwnKey);
  const costs = rules.flatMap(({ cost, settle }) => [cost, settle]).filter((name) => typeof name === "string");
  return {
    keys: Object.fromEntries(keys.map((name): [string, KeyFunction<AskedRequest>] => [name, (request) => request.keys[name]])),
    // What it comes to is the app's to say; not nothing, or the rule would not count the request.
    costs: Object.fromEntries(costs.map((name): [string, CostFunction<AskedRequest>] => [name, () => 1])),
    plan: () => plan,
    ipv6Prefix,
    ...keySecret(),
  };
}

/** From the environment only: arguments stand in the list of processes. */
function keySecret(): { keySecret?: string } {
  const secret = process.env["FLOODGATE_KEY_SECRET"];
  if (secret === undefined || secret === "") return {};
  if (secret.length >= 32) return { keySecret: secret };
  throw new Failure(
    "usage",
    `FLOODGATE_KEY_SECRET must have at least 32 characters, as the app's \`keySecret\`, but has ${secret.length}. Set it to the same text.`,
  );
}
