import {
  type CostFunction,
  isBuiltInKey,
  type Key,
  type KeyFunction,
  type PlainRule,
  type RateLimitOptions,
  type RequestReader,
  type RuleSet,
} from "@floodgate/core";

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

/** The names of what a rule counts by. */
export function keyNames({ key = "ip" }: PlainRule): readonly string[] {
  return typeof key === "string" ? [key] : key;
}

/** Whether a key is one that the app defines. */
export function isOwnKey(name: string): boolean {
  return !isBuiltInKey(name);
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
  };
}
