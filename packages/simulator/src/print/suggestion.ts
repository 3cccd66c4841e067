import { matchOf } from "../compare/trial.js";
import { type AlgorithmName, limitOption } from "../policies/options.js";
import { percentiles, type SuggestedRule, type Suggestion } from "../suggest/suggest.js";
import { count, duration, number, percent, time } from "./format.js";
import { sanitize, shownKey } from "./table.js";

/** A suggestion as a rules file, in which comments explain each number. */
export function suggestionText(suggestion: Suggestion): string {
  const comments = [...headText(suggestion), "", ...ratesText(suggestion), "", ...modeText];
  const rules = suggestion.rules.map((rule) => ruleText(suggestion, rule));
  return `${commented(comments, "")}rules:\n${rules.join("\n")}`;
}

/** Comments: nothing of a log begins a line of its own. A rules file with U+FFFD is refused, because it stands for broken UTF-8. */
function commented(lines: readonly string[], indent: string): string {
  const comments = lines.map((line) => `${indent}# ${sanitize(line).replaceAll("\u{fffd}", "?")}`);
  return comments.map((comment) => `${comment.trimEnd()}\n`).join("");
}

function headText({ requests, lines, clients, by, match, touch, firstMs = 0, lastMs = 0 }: Suggestion): string[] {
  const may = Math.floor(clients * touch + 1e-9);
  const few =
    may === 0
      ? [
          `${percentText(touch)} of ${count(clients, "client")} is less than one client, so no client is limited. For a limit that rests on clients`,
          `above it, give a log with at least ${number(Math.ceil(1 / touch))} clients, or a larger --touch.`,
        ]
      : [`That is at most ${number(may)} of ${count(clients, "client")}. The more clients, the surer the number: see the intervals below.`];
  return [
    `Suggested by floodgate simulate --suggest, from ${count(requests, "request")} in ${count(lines, "line")},`,
    `${time(firstMs)} to ${time(lastMs)} UTC, of ${count(clients, "client")} by ${by}${match === undefined ? "" : `, for ${match}`}.`,
    `Each rule has the least limit that would have limited at most ${percentText(touch)} of the clients.`,
    ...(touch === 0 ? ["So no client of this log is limited."] : few),
  ];
}

const modeText = [
  "All rules are in shadow mode: they count and report, but reject nothing. Keep the one that you want, try it, and then remove its mode.",
];

function ratesText({ rates, clients }: Suggestion): string[] {
  const cells = rates.map(({ windowMs, percentiles: found, most }) => [
    `any ${duration(windowMs)}`,
    ...percentiles.map((percentile) => {
      const quantile = found.get(percentile);
      return quantile === undefined ? "-" : number(quantile.value);
    }),
    number(most),
  ]);
  const rows = [["", ...percentiles.map((percentile) => `p${percentile}`), "most"], ...cells];
  const width = Math.max(...rows.flat().map(({ length }) => length)) + 2;
  const rests = percentiles.map((percentile) => {
    const above = Math.floor(clients * (1 - percentile / 100) + 1e-9);
    return above === 0 ? `p${percentile} would need more clients` : `p${percentile} on the ${number(above)} heaviest`;
  });
  return [
    `The most requests that a client made in any second, minute and hour. p99: 99 % of the clients made no more.`,
    ...rows.map((row) => `  ${row.map((cell, i) => (i === 0 ? cell.padEnd(width) : cell.padStart(width))).join("")}`),
    `What they rest on: ${rests.join(", ")}.`,
  ];
}

function ruleText({ by, match, window }: Suggestion, rule: SuggestedRule): string {
  const { algorithm, options } = rule;
  const keys = by.split(",").map((key) => key.trim());
  const policy = Object.entries({ algorithm, ...options }).map(([name, value]) => `${name}: ${value}`);
  return `${commented([...numbersText(rule, window), ...effectText(rule)], "  ")}  - name: suggested-${algorithm}
${match === undefined ? "" : `    match: ${matchText(match)}\n`}    key: ${keys.length === 1 ? JSON.stringify(keys[0]) : JSON.stringify(keys)}
    policy: { ${policy.join(", ")} }
    mode: shadow
`;
}

function matchText(match: string): string {
  const words = Object.entries(matchOf(match)).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return `{ ${words.join(", ")} }`;
}

function numbersText({ algorithm, options, policy, need }: SuggestedRule, window: string): string[] {
  const limit = Math.max(1, need.value);
  const all = need.above === 0 ? "all clients" : `all but ${number(need.above)} of the clients`;
  const confidence =
    need.high === undefined
      ? `With 95 % confidence it is ${number(need.low)} or more, maybe more than any client of this log has shown.`
      : `With 95 % confidence it is between ${number(need.low)} and ${number(need.high)}.`;
  const { pace, says } = meanings[algorithm];
  return [
    ...(pace === undefined ? [] : [`${pace} ${number(options[pace] as number)} per ${window}: the limit of the sliding-window-log.`]),
    `${limitOption(policy)} ${number(limit)}: ${says(all, window)}. ${confidence}`,
  ];
}

/** `says`: what a limit means for the clients that it does not touch. `pace`: the option with the rate, if there is one beside the limit. */
const meanings: Readonly<Record<AlgorithmName, { readonly pace?: string; says(all: string, window: string): string }>> = {
  "fixed-window": { says: (all, window) => `${all} used no more of a fixed window of ${window}` },
  "sliding-window-log": { says: (all, window) => `${all} used no more of any ${window}` },
  "sliding-window-counter": { says: (all, window) => `${all} used no more of any ${window}, as its two counters estimate it` },
  "token-bucket": { pace: "refill", says: (all) => `with that refill, ${all} were never short of more tokens` },
  "leaky-bucket": { pace: "leak", says: (all) => `with that leak, ${all} never had more requests in the queue` },
  gcra: { pace: "limit", says: (all) => `at that pace, ${all} were never ahead by more requests` },
};

/** What the rule did when the log was replayed under it. */
function effectText(rule: SuggestedRule): string[] {
  const { requests, limited, clients, clientsLimited, heaviest, delayed, longestQueuedMs } = rule;
  const stopped = heaviest
    .slice(0, 3)
    .map(({ key, requests, limited }) => `${shownKey(key)} (${count(requests, "request")}): ${limited === 0 ? "none" : number(limited)}`);
  return [
    `Replayed: it limits ${number(clientsLimited)} of ${count(clients, "client")} (${percent(clientsLimited, clients)}) and ${number(limited)} of ${count(requests, "request")} (${percent(limited, requests)}).`,
    ...(delayed > 0 ? [`It holds ${count(delayed, "request")} back, the longest for ${duration(longestQueuedMs)}.`] : []),
    `It stops of the heaviest clients: ${stopped.join(", ")}.`,
  ];
}

function percentText(share: number): string {
  return `${Number((100 * share).toPrecision(6))} %`;
}
