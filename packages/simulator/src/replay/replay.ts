import { type Decision, type EventListener, FloodgateError, type FloodgateEvent } from "@floodgate/core";
import { type CheckedRule, type Outcome, RateLimit } from "@floodgate/core/adapter";
import {
  type CompiledRule,
  checkOptions,
  formatDuration,
  invalidOption,
  isBuiltInKey,
  parseKeyName,
  type RuleSet,
  wholeNumber,
} from "@floodgate/core/rules";
import { type MemoryStore, memoryStore } from "@floodgate/store-memory";
import type { LogRequest } from "../formats/log-format.js";
import { count, number } from "../print/format.js";
import { readLogs } from "../read/merge.js";
import type { Kept } from "../read/reorder.js";
import { type LogOptions, type ReadOptions, Tally } from "../read/requests.js";
import type { LogSource } from "../read/source.js";
import { Clients, FieldReaders, logReader } from "./reader.js";

/** What the app would tell about a request, as fields of the log. */
export interface AppFields {
  /** The fields that hold the app's keys, by their names in the rules. */
  readonly keys?: Readonly<Record<string, string>>;
  /** The fields that hold the app's costs. Default: each request costs 1. */
  readonly costs?: Readonly<Record<string, string>>;
  /** The field that holds the request's plan. */
  readonly plan?: string | undefined;
  /** How many leading bits of an IPv6 address make one client. Default 56. */
  readonly ipv6Prefix?: number | undefined;
  /** The app's, so that secret keys have its digests. */
  readonly keySecret?: string | undefined;
}

export interface ReplayOptions extends AppFields, LogOptions {
  /** How many requests are sorted by their times at once. Default 10,000. */
  readonly reorder?: number | undefined;
  /** The most clients that are measured for each rule, and that the store holds for it. It bounds the memory. Default 1,000,000. */
  readonly maxClients?: number | undefined;
}

/** The options of all functions that replay logs. One list serves all of them: what it rejects is misspelt everywhere. */
const optionNames = [
  ...["format", "address", "keys", "costs", "plan", "ipv6Prefix", "keySecret", "reorder", "maxClients", "top", "onProgress"],
  ...["window", "by", "match", "touch", "grid", "signal", "settleMs", "pollMs", "onLook"],
];

/** Those that are whole numbers. */
const numbers = ["reorder", "maxClients", "top", "grid", "settleMs", "pollMs"];

export const defaultMaxClients = 1_000_000;

/** The most keys that a memory store can hold. */
const largestMaxKeys = 2 ** 23;

/** Decides the requests of a log as a middleware with these rules would have, each at its own time. */
export class Replay {
  readonly clients: Clients;
  /** What was read of the logs. */
  readonly tally: Tally = new Tally();
  readonly store: MemoryStore;
  /** How many requests would have been rejected. */
  rejected = 0;
  /** How many requests would have failed, by the code of the error. */
  readonly failed: Map<string, number> = new Map();
  /** What the rules warned of. */
  readonly warnings: string[] = [];
  /**
   * Called with the key, as text, of each decision that counts. If one limit rejects a request, a limit that allowed it was not charged, and
   * its decision does not count. The decision has the name of the rule.
   */
  onDecision: (key: string, decision: Decision) => void = () => undefined;
  /** Called with all other events of the rules. */
  onEvent: EventListener = () => undefined;
  /** The time of the current request. It never goes back. */
  nowMs = 0;
  readonly rules: readonly CompiledRule<LogRequest>[];
  /** Names of fields and headers that the rules need and no log has. */
  readonly unknownFields: Set<string> = new Set();
  readonly #limit: RateLimit<LogRequest>;

  /** @throws FloodgateError if a rule is invalid, an option is unknown, or a number is no whole one. */
  constructor(set: RuleSet, options: AppFields & { readonly maxClients?: number | undefined }) {
    checkOptions("A replay", options, optionNames, "simulate(logs, rules, { maxClients: 100_000 })");
    for (const [name, value] of Object.entries(options))
      if (numbers.includes(name) && value !== undefined) wholeNumber("A replay", name, value, name === "maxClients" ? 1 : 0);
    const { maxClients = defaultMaxClients, ipv6Prefix = 56, keySecret } = options;
    this.clients = new Clients(maxClients);
    const clock = (): number => this.nowMs;
    this.store = memoryStore({ maxKeys: Math.min(largestMaxKeys, maxClients * storedPerClient(set)), clock });
    const listener = (event: FloodgateEvent): void => {
      if (event.type === "warning") this.warnings.push(event.message);
      else this.onEvent(event);
    };
    const rules = { current: set, subscribe: () => () => undefined };
    const fields = new FieldReaders(this.unknownFields);
    const app = { ...appOptions(set, options, fields), ipv6Prefix, ...(keySecret === undefined ? {} : { keySecret }) };
    const reader = logReader(this.clients, new Set(headersOf(set)), fields);
    const { store } = this;
    // Nobody reads a response.
    const responses = { headers: false, body: "limited" } as const;
    this.#limit = new RateLimit("simulate", { ...app, ...responses, rules, store, onEvent: listener }, [], reader, () => store);
    this.rules = this.#limit.version.rules.all;
  }

  /** Decides a request. */
  decide(request: LogRequest): void {
    const { timeMs } = request;
    const { tally } = this;
    if (timeMs >= this.nowMs) this.nowMs = timeMs;
    else {
      tally.late++;
      tally.latestMs = Math.max(tally.latestMs, this.nowMs - timeMs);
    }
    if (timeMs < tally.firstMs) tally.firstMs = timeMs;
    if (timeMs > tally.lastMs) tally.lastMs = timeMs;
    try {
      // No promise: the functions of this app and the store answer at once.
      const { action, checks, decisions } = this.#limit.decide(request) as Outcome;
      if (action === "reject") this.rejected++;
      for (let i = 0; i < decisions.length; i++) {
        const decision = decisions[i] as Decision;
        if (action === "pass" || !decision.allowed) this.onDecision((checks[i] as CheckedRule).key, decision);
      }
    } catch (error) {
      if (!(error instanceof FloodgateError)) throw error;
      this.failed.set(error.code, (this.failed.get(error.code) ?? 0) + 1);
    }
  }

  close(): void {
    this.#limit.close();
  }
}

/** A rule has a count for each client; with a ban, also one of its rejections, and the ban. */
function storedPerClient({ rules }: RuleSet): number {
  return rules.reduce((sum, { ban }) => sum + (ban === undefined ? 1 : 3), 0);
}

/** The names in rules that the app defines. */
export interface AppNames {
  readonly keys: readonly string[];
  readonly costs: readonly string[];
}

/** The names of all keys in these rules. */
function keyNames(rules: RuleSet["rules"]): string[] {
  return rules.flatMap(({ key = "ip" }) => [key].flat()).map((key) => parseKeyName(key).name);
}

/** The names of keys and costs in these rules that the app defines, each once. */
export function appNames({ rules }: RuleSet): AppNames {
  const keys = keyNames(rules).filter((name) => !isBuiltInKey(name));
  const costs = rules.flatMap(({ cost, settle }) => [cost, settle]).filter((name) => typeof name === "string");
  return { keys: [...new Set(keys)], costs: [...new Set(costs)] };
}

/** The headers that the rules read, in lower case. */
export function headersOf({ rules }: RuleSet): string[] {
  const counted = keyNames(rules).flatMap((name) => (name.startsWith("header:") ? [name.slice("header:".length)] : []));
  return [...counted, ...rules.flatMap(({ match }) => Object.keys(match?.header ?? {}))].map((name) => name.toLowerCase());
}

/** The functions of the app. An empty text is no key, and only whole numbers are costs. */
function appOptions(set: RuleSet, fields: AppFields, readers: FieldReaders) {
  const { keys, costs } = appNames(set);
  const read = (request: LogRequest, field: string | undefined): string | undefined =>
    field === undefined ? undefined : readers.read(request, field);
  const costOf = (request: LogRequest, name: string): number => {
    const cost = Number(read(request, fields.costs?.[name]) ?? 1);
    return Number.isInteger(cost) && cost >= 0 ? cost : 1;
  };
  return {
    keys: Object.fromEntries(keys.map((name) => [name, (request: LogRequest) => read(request, fields.keys?.[name]) || undefined])),
    costs: Object.fromEntries(costs.map((name) => [name, (request: LogRequest) => costOf(request, name)])),
    plan: (request: LogRequest) => read(request, fields.plan),
  };
}

const defaultReorder = 10_000;
/** Requests out of order are told in a note up to this many, or up to this share of all. Above both, the numbers would be wrong. */
const maxLate = 100;
const maxLateShare = 0.01;

/**
 * Replays logs, and closes the replay.
 * @param decide is called with each request. Default: the replay decides it.
 * @throws FloodgateError if too many requests came after later ones.
 */
export async function replayLogs(
  sources: readonly LogSource[],
  set: RuleSet,
  options: ReplayOptions,
  replay: Replay,
  decide: (request: LogRequest) => void = (request) => replay.decide(request),
): Promise<void> {
  const reading = readingOf(set, options);
  const { tally } = replay;
  try {
    for await (const batch of readLogs(sources, reading, tally)) {
      for (const request of batch) decide(request);
      // A log with the newest line first need not be read to its end.
      if (tally.late > 10_000) checkOrder(sources, tally, reading.reorder);
    }
    checkOrder(sources, tally, reading.reorder);
  } finally {
    replay.close();
  }
}

/** @throws FloodgateError if too many requests came after later ones. */
function checkOrder(sources: readonly LogSource[], { late, latestMs, requests }: Tally, reorder: number): void {
  if (late <= maxLate || late <= maxLateShare * requests) return;
  const names = sources.map(({ name }) => name).join(", ");
  throw invalidOption(
    `${names}: ${count(late, "request")} of ${number(requests)} came after later ones, by up to ${formatDuration(latestMs)}, so a replay would count wrong. Sort the log by time first. If its newest line is the first, write: tac ${sources.length === 1 ? names : "<log>"} | floodgate simulate - (and your options). Or raise --reorder above ${number(reorder)}, if its lines are only mixed up.`,
  );
}

/** How logs are read for these rules. */
export function readingOf(set: RuleSet, options: ReplayOptions): ReadOptions {
  return { ...options, reorder: options.reorder ?? defaultReorder, keeps: keptFor(set, options) };
}

/** What the rules read of a request. */
function keptFor(set: RuleSet, { plan }: AppFields): Kept {
  const { keys, costs } = appNames(set);
  const lines = plan !== undefined || keys.length > 0 || costs.length > 0 || headersOf(set).length > 0;
  return { targets: set.rules.some(({ match, key }) => match !== undefined || [key].flat().includes("route")), lines };
}
