import { formatDuration, type RuleSet } from "@floodgate/core/rules";
import type { Tally } from "../read/tally.js";
import { type AppFields, appNames, type Replay } from "./replay.js";

const skips = {
  malformed: "do not fit the format",
  "no-time": "have no valid time",
  "too-long": "are longer than 1 MiB",
  "no-request": "have no HTTP request",
} as const;

/** What one should know to judge the numbers of a replay, in sentences. */
export function notesOf(
  set: RuleSet,
  fields: AppFields & { readonly maxClients?: number | undefined },
  tally: Tally,
  replay: Replay,
  rules: readonly { readonly unmeasured: number }[],
): string[] {
  const notes = [...tally.problems];
  for (const [why, words] of Object.entries(skips)) {
    const count = tally.skipped[why as keyof typeof skips];
    if (count > 0) notes.push(`${number(count)} of ${number(tally.lines)} lines ${words}. They were skipped.`);
  }
  if (tally.late > 0) {
    notes.push(
      `${number(tally.late)} requests came out of order, by up to ${formatDuration(tally.latestMs)}, and could not be sorted. They count at the time of the request before them. --reorder sorts more lines at once.`,
    );
  }
  const { keys, costs } = appNames(set);
  for (const key of keys.filter((key) => fields.keys?.[key] === undefined)) {
    notes.push(
      `The rules count by ${JSON.stringify(key)}, but nothing says where the log has it, so no request has this key. Write --key ${key}=<field>.`,
    );
  }
  for (const cost of costs.filter((cost) => fields.costs?.[cost] === undefined)) {
    notes.push(
      `The rules use the cost ${JSON.stringify(cost)}, but nothing says where the log has it, so each request costs 1. Write --cost ${cost}=<field>.`,
    );
  }
  if (fields.plan === undefined && set.rules.some(({ plans }) => plans !== undefined)) {
    notes.push("The rules have plans, but nothing says where the log has them, so no request has a plan. Write --plan <field>.");
  }
  if (set.rules.some(({ settle }) => settle !== undefined)) {
    notes.push("Some rules settle the cost of a request after its response. A log does not have that, so the cost at the start counts.");
  }
  for (const name of replay.unknownFields) {
    const what = name.startsWith("header:")
      ? `the header ${JSON.stringify(name.slice("header:".length))}`
      : `a field ${JSON.stringify(name)}`;
    notes.push(`The log does not have ${what}, so no request has it.`);
  }
  for (const [code, count] of replay.failed)
    notes.push(failed[code]?.(number(count)) ?? `The app would have failed with ${code} for ${number(count)} requests.`);
  if (replay.clients.named > 0) {
    notes.push(`${number(replay.clients.named)} clients have a name instead of an IP address. Each counts as an address of its own.`);
  }
  const unmeasured = Math.max(0, ...rules.map(({ unmeasured }) => unmeasured));
  if (unmeasured > 0) {
    notes.push(
      `There are more clients than --max-clients. ${number(unmeasured)} requests of the others were counted, but their clients are not among the clients.`,
    );
  }
  if (replay.store.evictions > 0) {
    notes.push(`The store was full and dropped ${number(replay.store.evictions)} counts, so more would be limited. Raise --max-clients.`);
  }
  return [...notes, ...replay.warnings];
}

const failed: Readonly<Record<string, (count: string) => string>> = {
  FLOODGATE_NO_CLIENT_IP: (count) =>
    `${count} requests have no client address. The app would have failed with FLOODGATE_NO_CLIENT_IP. --ip <field> names another field.`,
  FLOODGATE_NO_ROUTE: (count) => `A log has no routes, so ${count} requests could not be counted by route. Give the rule a path without *.`,
};

function number(value: number): string {
  return value.toLocaleString("en");
}
