import type { CostFunction, Key, KeyFunction } from "@floodgate/core";
import type { RateLimitOptions, RequestReader } from "@floodgate/core/adapter";
import type { PlainRule, RuleSet } from "@floodgate/core/rules";
import { appNames } from "@floodgate/simulator";
import { Failure } from "./failure.js";
import type { Io } from "./io.js";
import { didYouMean, listOf } from "./output/format.js";
import { sanitize } from "./output/terminal.js";

/** A request, as the options of `check` describe it. */
export interface CliRequest {
  readonly method: string;
  readonly path: string;
  /** By lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly ip: string | undefined;
  readonly route: string | undefined;
  /** The values of the app's keys. */
  readonly keys: Readonly<Record<string, Key>>;
}

export const cliReader: RequestReader<CliRequest> = {
  method: ({ method }) => method,
  path: ({ path }) => path,
  header: ({ headers }, name) => headers[name],
  remoteAddress: ({ ip }) => ip,
  clientIp: ({ ip }) => ip,
  // `ip` is the client's address already, so no proxy header is read.
  trustsProxy: () => true,
  route: ({ route }) => route,
};

/** The `rateLimit` options of an app with these rules. What the command line cannot know is simulated. */
export function appOptions(
  set: RuleSet,
  { plan, ipv6Prefix }: { plan?: string | undefined; ipv6Prefix: number },
): Omit<RateLimitOptions<CliRequest, string>, "rules"> {
  const { keys, costs } = appNames(set);
  return {
    keys: Object.fromEntries(keys.map((name): [string, KeyFunction<CliRequest>] => [name, (request) => request.keys[name]])),
    // Only the app knows the cost. With 0, the rule would not count the request.
    costs: Object.fromEntries(costs.map((name): [string, CostFunction<CliRequest>] => [name, () => 1])),
    plan: () => plan,
    ipv6Prefix,
    ...keySecret(),
  };
}

/** Read from the environment only: other users can see arguments in the list of processes. */
export function keySecret(): { keySecret?: string } {
  const secret = process.env["FLOODGATE_KEY_SECRET"];
  if (secret === undefined || secret === "") return {};
  if (secret.length >= 32) return { keySecret: secret };
  throw new Failure(
    "usage",
    `FLOODGATE_KEY_SECRET must have at least 32 characters, but has ${secret.length}. Set it to the app's \`keySecret\`.`,
  );
}

/** Prints a note if no rule has this plan. It is not an error, because an app may have plans without limits of their own. */
export function noteUnknownPlan(io: Io, plan: string | undefined, rules: readonly PlainRule[]): void {
  const known = [...new Set(rules.flatMap(({ plans = {} }) => Object.keys(plans)))];
  if (plan === undefined || known.includes(plan)) return;
  const [first, ...others] = rules.map(({ name }) => JSON.stringify(name));
  const subject = others.length === 0 ? `${first} has` : "the rules have";
  const note = `${subject} no plan ${JSON.stringify(plan)}.${didYouMean(plan, known)} Plans: ${listOf(known)}. The rule's own policy is shown, which applies to all other plans.`;
  io.err(`${sanitize(`floodgate: ${note}`)}\n`);
}
