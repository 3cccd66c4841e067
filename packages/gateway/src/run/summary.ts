import { describePolicy, wordsOf } from "@floodgate/core/rules";
import { isUnix } from "../config/address.js";
import type { Command, Settings } from "../config/settings.js";
import type { RunningServer } from "../service/listen.js";
import type { Service } from "../service/service.js";

/** The most rules that a message lists. */
export const maxRules = 20;

/** A rule in words: `"login: 5 per 15m by ip, for POST /login"`. */
export function ruleWords({ name, shadow, fixed, options }: Service["limit"]["rules"][number]): string {
  const { match, key, ban } = wordsOf(options);
  const policy = fixed === undefined ? "a limit of the plan" : describePolicy(fixed.policy);
  return `${name}: ${policy} by ${key}, for ${match}${ban === undefined ? "" : `, ban of ${ban}`}${shadow ? " (shadow: counted, never rejected)" : ""}`;
}

/** What a service says once it runs: where it listens, what is limited, and what to do next. */
export function summary(command: Command, { limit, settings, rules: { missing } }: Service, servers: readonly RunningServer[]): string {
  const urls = new Map(servers.map(({ name, url }) => [name, url]));
  const source = settings.rules ?? `the Redis key ${settings.rulesKey}`;
  const rules = limit.rules.slice(0, maxRules).map((rule) => `  ${ruleWords(rule)}`);
  if (limit.rules.length > rules.length) rules.push(`  ... and ${limit.rules.length - rules.length} more`);
  return [
    `floodgate ${command} runs.`,
    ...servers.filter(({ name }) => name !== "admin").map(({ name, url }) => `  ${purposeOf(name, command, settings)}: ${url}`),
    ...adminLines(settings, urls.get("admin")),
    missing === undefined ? `These limits of ${source} apply, and changes of it apply at once:` : `There are no limits yet: ${missing}`,
    ...rules,
    settings.redis === undefined
      ? "Counts are in the memory of this process. To share them between processes, write --redis redis://127.0.0.1:6379."
      : `Counts are in Redis. While it is down, ${downWords[settings.onStoreError]}.`,
    ...(command === "gateway" && !isUnix(settings.listen) ? [`Try it: curl -i ${urls.get("listen")}/`] : []),
  ].join("\n");
}

const downWords = {
  allow: "requests pass uncounted",
  deny: "requests are answered 503",
  memory: "this process counts by itself",
} as const;

function purposeOf(name: string, command: Command, { upstream }: Settings): string {
  if (name === "apiListen") return "JSON API";
  if (name === "rls") return "Envoy's rate limit service";
  if (name === "listen") return command === "serve" ? "gateways ask" : `requests for ${upstream} arrive at`;
  return name;
}

function adminLines({ dashboard, metrics }: Settings, url: string | undefined): string[] {
  if (url === undefined) return [];
  const pages = [dashboard && "/dashboard", metrics && "/metrics", "/readyz", "/healthz"].filter(Boolean);
  return [`  admin: ${pages.map((page, i) => (i === 0 ? `${url}${page}` : page)).join("  ")}`];
}
