import { setTimeout } from "node:timers/promises";
import { describePolicy, wordsOf } from "@floodgate/core/rules";
import { startAdmin } from "../admin/admin.js";
import { startApi } from "../api/server.js";
import { startAsk } from "../ask/ask.js";
import { isUnix } from "../config/address.js";
import type { Command, Settings } from "../config/settings.js";
import { startRls } from "../envoy/server.js";
import { isPretty, type LogTarget } from "../log/log.js";
import { startProxy } from "../proxy/proxy.js";
import type { RunningServer } from "../service/listen.js";
import { Service } from "../service/service.js";
import { checkRules } from "./check-rules.js";

/** What each command starts, beside the admin server. */
const servers = { serve: [startAsk, startApi, startRls], gateway: [startProxy] } as const;

/** A running service. */
export interface Running {
  /** Where it listens, by setting: `{ listen: "127.0.0.1:8080", admin: "127.0.0.1:9090" }`. */
  readonly addresses: Readonly<Record<string, string>>;
  /** Drains and closes: `/readyz` fails for `drainMs`, then no request is accepted, and those in flight end within `closeMs`. */
  close(): Promise<void>;
}

/** How a service runs, beside its settings. */
export interface RunOptions {
  /** Where log lines go. Default: standard output. */
  readonly log?: LogTarget;
}

/**
 * Starts a service with complete settings.
 * @throws FloodgateError if it cannot start. Then nothing is left running.
 */
export async function run(command: Command, settings: Settings, { log: target = process.stdout }: RunOptions = {}): Promise<Running> {
  const service = await Service.start(settings, target, (rules) => checkRules(rules, command, settings));
  const started: RunningServer[] = [];
  try {
    for (const start of [...servers[command], startAdmin]) {
      const server = await start(service);
      if (server !== undefined) started.push(server);
    }
  } catch (error) {
    await closeAll(service, started);
    throw error;
  }
  announce(command, service, started, target);
  warnOfDescriptors(command, service);
  let closed: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    service.draining = true;
    service.log.info("Draining: /readyz fails, and requests are still answered.");
    await setTimeout(settings.drainMs);
    await closeAll(service, started);
    service.log.info("Closed.");
  };
  return {
    addresses: Object.fromEntries(started.map(({ name, address }) => [name, address])),
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}

/** Closes the servers, and then what they use. The admin server is last, so that `/readyz` answers until the end. */
async function closeAll(service: Service, started: readonly RunningServer[]): Promise<void> {
  await Promise.all(started.filter(({ name }) => name !== "admin").map((server) => server.close()));
  await Promise.all(started.filter(({ name }) => name === "admin").map((server) => server.close()));
  await service.close();
}

/** Rules for Envoy count nothing where Envoy does not ask. They may be right: a rules file can be shared. */
function warnOfDescriptors(command: Command, { limit, log, settings }: Service): void {
  if (settings.rls !== undefined) return;
  const names = limit.rules.filter(({ match }) => match?.descriptor !== undefined).map(({ name }) => name);
  if (names.length === 0) return;
  const advice = command === "serve" ? "Write --rls 127.0.0.1:8082" : "floodgate serve --rls 127.0.0.1:8082 answers them";
  log.warn(
    { rules: names.slice(0, maxRules) },
    `These rules limit nothing here: they count what Envoy's rate limit service is asked. ${advice}`,
  );
}

/** The first message: text for people, else one log line. */
function announce(command: Command, service: Service, started: readonly RunningServer[], target: LogTarget): void {
  const { log, limit, settings } = service;
  if (!log.isLevelEnabled("info")) return;
  if (isPretty(settings, target)) {
    log.info(summary(command, service, started));
    return;
  }
  const addresses = Object.fromEntries(started.map(({ name, url }) => [name, url]));
  log.info({ command, ...addresses, rules: limit.rules.map(ruleWords) }, `floodgate ${command} runs`);
}

/** The most rules that a message lists. */
const maxRules = 20;

/** A rule in words: `"login: 5 per 15m by ip, for POST /login"`. */
function ruleWords({ name, shadow, fixed, options }: Service["limit"]["rules"][number]): string {
  const { match, key, ban } = wordsOf(options);
  const policy = fixed === undefined ? "a limit of the plan" : describePolicy(fixed.policy);
  return `${name}: ${policy} by ${key}, for ${match}${ban === undefined ? "" : `, ban of ${ban}`}${shadow ? " (shadow: counted, never rejected)" : ""}`;
}

/** What a service says once it runs: where it listens, what is limited, and what to do next. */
function summary(command: Command, { limit, settings, rules: { missing } }: Service, servers: readonly RunningServer[]): string {
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
