import { formatDuration, type RuleSet } from "@floodgate/core/rules";
import { count, number } from "../print/format.js";
import { type AppFields, appNames, type Replay } from "./replay.js";

/** Why lines were skipped: of one line, and of several. */
const skips = {
  malformed: ["does not fit the format. It was skipped.", "do not fit the format. They were skipped."],
  "no-time": ["has no valid time. It was skipped.", "have no valid time. They were skipped."],
  "too-long": ["is longer than 1 MiB. It was skipped.", "are longer than 1 MiB. They were skipped."],
  "no-request": ["has no HTTP request. It was skipped.", "have no HTTP request. They were skipped."],
} as const;

/** What one should know to judge the numbers of a replay, in sentences. */
export function notesOf(
  set: RuleSet,
  fields: AppFields & { readonly maxClients?: number | undefined },
  replay: Replay,
  rules: readonly { readonly unmeasured: number }[],
): string[] {
  const { tally } = replay;
  const notes = [...tally.problems];
  for (const [why, [one, several]] of Object.entries(skips)) {
    const skipped = tally.skipped[why as keyof typeof skips];
    if (skipped > 0) notes.push(`${number(skipped)} of ${count(tally.lines, "line")} ${skipped === 1 ? one : several}`);
  }
  if (tally.late > 0) {
    notes.push(
      `${count(tally.late, "request")} came out of order, by up to ${formatDuration(tally.latestMs)}, and could not be sorted. ${tally.late === 1 ? "It counts" : "They count"} at the time of the request before. --reorder sorts more lines at once.`,
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
  if (set.rules.some(({ grants }) => grants !== undefined && grants.length > 0)) {
    notes.push("Some rules grant plans for a time. The grants that are in force now count, not those of the times in the log.");
  }
  for (const name of replay.unknownFields) {
    const what = name.startsWith("header:")
      ? `the header ${JSON.stringify(name.slice("header:".length))}`
      : `a field ${JSON.stringify(name)}`;
    notes.push(`The log does not have ${what}, so no request has it.`);
  }
  for (const [code, times] of replay.failed)
    notes.push(failed[code]?.(times) ?? `The app would have failed with ${code} for ${count(times, "request")}.`);
  const { named } = replay.clients;
  if (named > 0) {
    notes.push(
      `${count(named, "client")} ${named === 1 ? "has" : "have"} a name instead of an IP address. Each name counts as an address of its own.`,
    );
  }
  notes.push(...unmeasuredNote(rules, "--max-clients"));
  if (replay.store.evictions > 0) {
    notes.push(`The store was full and dropped ${count(replay.store.evictions, "count")}, so more would be limited. Raise --max-clients.`);
  }
  return [...notes, ...replay.warnings];
}

/** Says so if some clients were not measured. */
export function unmeasuredNote(rules: readonly { readonly unmeasured: number }[], option: string): string[] {
  const unmeasured = Math.max(0, ...rules.map((rule) => rule.unmeasured));
  if (unmeasured === 0) return [];
  return [
    `There are more clients than ${option}. ${count(unmeasured, "request")} of the others ${unmeasured === 1 ? "was" : "were"} counted, but these clients were not measured.`,
  ];
}

const failed: Readonly<Record<string, (times: number) => string>> = {
  FLOODGATE_NO_CLIENT_IP: (times) =>
    `${count(times, "request")} ${times === 1 ? "has" : "have"} no client address. The app would have failed with FLOODGATE_NO_CLIENT_IP. --ip <field> names another field.`,
  FLOODGATE_NO_ROUTE: (times) =>
    `A log has no routes, so ${count(times, "request")} could not be counted by route. Give the rule a path without *.`,
};
