import type { Limit } from "../decide/decision.js";
import type { Descriptor } from "../requests/descriptor.js";
import { atPath, conflict, invalidOption, shown } from "../support/errors.js";
import { type DescriptorMatch, type EntryTest, type Match, valueTest } from "./match.js";

/** A rule's `match`, before it is checked. */
type Parts = { readonly [part in "method" | "path" | "header" | "domain" | "descriptor"]?: unknown };

/**
 * @param keyed the entries that the rule counts by: it matches only descriptors that have them.
 * @throws FloodgateError if a part is invalid, or can never match.
 */
export function compileDescriptorMatch(where: string, match: Parts, keyed: readonly string[]): DescriptorMatch {
  const { domain, descriptor } = match;
  const http = (["method", "path", "header"] as const).find((part) => match[part] !== undefined);
  if (http !== undefined) {
    const message = `${where}: \`match.${http}\` is for HTTP requests, and \`match.${domain === undefined ? "descriptor" : "domain"}\` is for descriptors of Envoy's rate limit service. No request has both: write two rules.`;
    throw conflict(message, [http]);
  }
  const entries = descriptor === undefined ? [] : atPath(["descriptor"], () => compileEntries(where, descriptor));
  for (const name of keyed) {
    const own = entries.find((entry) => entry.name === name);
    if (own === undefined) entries.push({ name, absent: false, ...valueTest(true) });
    else if (own.absent) {
      const message = `${where}: the rule counts by the entry ${shown(name)}, but \`match.descriptor\` says that it must be missing, so the rule can never match. Write descriptor: { ${shown(name)}: true }.`;
      throw conflict(message, ["descriptor", name]);
    }
  }
  const test = domain === undefined ? undefined : atPath(["domain"], () => valueTest(texts(where, "domain", domain, 'domain: "edge"')));
  return { domain: test, entries };
}

function compileEntries(where: string, descriptor: unknown): EntryTest[] {
  const example = 'descriptor: { path: "/login", remote_address: true }';
  const named =
    typeof descriptor === "object" && descriptor !== null && !Array.isArray(descriptor) ? Object.entries(descriptor) : undefined;
  if (named === undefined || named.length === 0) {
    const message = `${where}: \`match.descriptor\` must name entries and their values, but was ${shown(descriptor)}. Write ${example}.`;
    throw invalidOption(message);
  }
  return named.map(([name, value]) =>
    atPath([name], () => {
      if (name === "") {
        throw invalidOption(`${where}: \`match.descriptor\` names an entry without a key. Write ${example}.`);
      }
      if (typeof value === "boolean") return { name, absent: !value, ...valueTest(value) };
      return { name, absent: false, ...valueTest(texts(where, `descriptor.${name}`, value, `descriptor: { ${shown(name)}: "free" }`)) };
    }),
  );
}

/** One text or a list of at least one. */
function texts(where: string, option: string, value: unknown, example: string): readonly string[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  const bad = list.findIndex((text) => typeof text !== "string");
  if (list.length > 0 && bad < 0) return list as readonly string[];
  const kinds = option === "domain" ? "a string or a list of strings" : "a string, a list of strings, true or false";
  const given = bad < 0 ? "an empty array" : shown(list[bad]);
  const message = `${where}: \`match.${option}\` must be ${kinds}, but was given ${given}. Write ${example}.`;
  throw invalidOption(message, Array.isArray(value) && bad >= 0 ? [bad] : []);
}

/** Whether a descriptor fits all parts of a match. Of several entries with one key, one must fit. */
export function fitsDescriptor({ domain, entries }: DescriptorMatch, descriptor: Descriptor): boolean {
  if (domain?.fits(descriptor.domain) === false) return false;
  for (const { name, absent, fits } of entries) {
    let isPresent = false;
    let hasFit = false;
    for (const entry of descriptor.entries) {
      if (entry.key !== name) continue;
      isPresent = true;
      if (fits(entry.value)) hasFit = true;
    }
    if (isPresent ? !hasFit : !absent) return false;
  }
  return true;
}

/** The parts of a compiled rule that descriptors restrict. */
interface CheckedRule {
  readonly fixed: Limit | undefined;
  readonly plans: ReadonlyMap<string, Limit> | undefined;
  readonly options: { readonly hold?: unknown; readonly settle?: unknown; readonly refundWhen?: unknown };
}

/** What rules need to count descriptors of Envoy's rate limit service. Apps do without it. */
export interface DescriptorRules {
  /** @param keyed the entries that the rule counts by. */
  compileMatch(where: string, match: Match, keyed: readonly string[]): DescriptorMatch;
  checkRule(where: string, rule: CheckedRule): void;
}

/**
 * Checks what a rule for descriptors cannot have: Envoy asks once, does not hold the request, and does not tell how it ended.
 * @throws FloodgateError `FLOODGATE_CONFLICTING_OPTIONS`
 */
function checkForDescriptors(where: string, { fixed, plans, options }: CheckedRule): void {
  const limits = [{ at: ["policy"], limit: fixed }, ...[...(plans ?? [])].map(([plan, limit]) => ({ at: ["plans", plan], limit }))];
  const queue = limits.find(({ limit }) => limit?.policy.algorithm === "leaky-bucket");
  if (queue !== undefined) {
    const message = `${where}: \`${queue.at.join(".")}\` is a leaky-bucket, which holds requests, but Envoy's rate limit service only allows or rejects. Write algorithm: gcra or token-bucket.`;
    throw conflict(message, queue.at);
  }
  const held = limits.find(({ limit }) => limit?.policy.holdMs !== undefined);
  if (held !== undefined) {
    const message = `${where}: it holds units until a request has ended (concurrency, hold), but Envoy's rate limit service never says when. Use another policy without \`hold\`, or floodgate gateway.`;
    throw conflict(message, options.hold === undefined ? held.at : ["hold"]);
  }
  for (const option of ["settle", "refundWhen"] as const) {
    if (options[option] === undefined) continue;
    throw conflict(`${where}: \`${option}\` needs the response, which Envoy's rate limit service never sees. Leave it out.`, [option]);
  }
}

export const descriptorRules: DescriptorRules = { compileMatch: compileDescriptorMatch, checkRule: checkForDescriptors };
