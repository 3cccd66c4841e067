import {
  type AskedRequest,
  askProcess,
  isCounted,
  isUnchecked,
  policyText,
  type Reason,
  saysText,
  usedOf,
  verdictOf,
} from "@floodgate/core/rules";
import type { RequestAnswer, RequestReason } from "../contract.js";
import { textOf } from "../text.js";
import { invalidBody, isOptionalText, isText, type JsonBody, Refusal } from "./json.js";
import type { KeyLabels } from "./key-labels.js";

const maxEntries = 50;

/**
 * What the rules of this process would say of a request.
 * @throws Refusal
 */
export async function askRequest(body: JsonBody, labels: KeyLabels): Promise<RequestAnswer> {
  const request = requestOf(body);
  let reasons: Reason[];
  try {
    reasons = await askProcess(request);
  } catch (error) {
    throw new Refusal(502, "store", `The store failed: ${textOf(error)}`);
  }
  return { verdict: verdictOf(reasons), rules: reasons.map((reason) => shownReason(reason, labels)) };
}

function requestOf({ method = "GET", path, headers, ip, plan, keys }: JsonBody): AskedRequest {
  if (!isText(method) || !/^[A-Za-z-]{1,40}$/.test(method)) throw invalidBody("`method` must be a method");
  if (!isText(path) || !/^\/\S*$/.test(path)) throw invalidBody("`path` must be a full path");
  if (!isOptionalText(ip)) throw invalidBody("`ip` must be an address");
  if (!isOptionalText(plan)) throw invalidBody("`plan` must be the name of a plan");
  const lower = Object.entries(texts("headers", headers)).map(([name, value]) => [name.toLowerCase(), value]);
  return { method: method.toUpperCase(), path, headers: Object.fromEntries(lower), ip, plan, keys: texts("keys", keys) };
}

function texts(name: string, value: unknown): Record<string, string> {
  // Without a prototype, because a header may be called constructor.
  const found: Record<string, string> = Object.create(null);
  if (value === undefined) return found;
  const entries = typeof value === "object" && value !== null && !Array.isArray(value) ? Object.entries(value) : undefined;
  if (entries === undefined || entries.length > maxEntries || !entries.every(([name, text]) => isText(name) && isText(text))) {
    throw invalidBody(`\`${name}\` must be an object of at most ${maxEntries} texts`);
  }
  return Object.assign(found, value);
}

function shownReason(reason: Reason, labels: KeyLabels): RequestReason {
  const { rule, shadow } = reason;
  const mode = shadow ? "shadow" : "enforce";
  if (!isCounted(reason)) return { rule, mode, counts: false, words: reason.why };
  const { key, cost, decision } = reason;
  const used = isUnchecked(decision) ? {} : { used: usedOf(decision) };
  const numbers = { policy: policyText(decision.policy), cost, ...used, limit: decision.limit };
  return { rule, mode, counts: true, words: saysText(reason), key: labels.shown(key), ...numbers };
}
