import type {
  BlockTarget,
  GrantTarget,
  History,
  KeyAnswer,
  KeyQuery,
  KeyTarget,
  Overview,
  Problem,
  Range,
  RequestAnswer,
  RequestQuery,
} from "../contract.js";

/** Works without a trailing slash too, and behind a proxy that changes the path. */
const addressOf = (path: string): URL => new URL(location.origin + location.pathname.replace(/\/?$/, "/") + path);

/** A refusal or failure in words for a person. */
export class ApiError extends Error {}

export const liveAddress = (): URL => addressOf("data/live");

export const readOverview = (): Promise<Overview> => ask("data/overview");

export const readHistory = (range: Range): Promise<History> => ask(`data/history?range=${range}`);

export const readKey = (query: KeyQuery): Promise<KeyAnswer> => ask("data/key", query);

export const askRequest = (query: RequestQuery): Promise<RequestAnswer> => ask("data/request", query);

export const reset = (target: KeyTarget): Promise<KeyAnswer> => ask("actions/reset", target);

export const block = (target: BlockTarget): Promise<KeyAnswer> => ask("actions/block", target);

export const grant = (target: GrantTarget): Promise<KeyAnswer> => ask("actions/grant", target);

export const revoke = (target: KeyTarget): Promise<KeyAnswer> => ask("actions/revoke", target);

export const unblock = (target: KeyTarget): Promise<KeyAnswer> => ask("actions/unblock", target);

async function ask<Json>(path: string, body?: unknown): Promise<Json> {
  const request: RequestInit = { headers: { accept: "application/json" }, cache: "no-store", signal: AbortSignal.timeout(15_000) };
  if (body !== undefined) {
    Object.assign(request, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { ...request.headers, "content-type": "application/json" },
    });
  }
  let answer: Response;
  try {
    answer = await fetch(addressOf(path), request);
  } catch {
    throw new ApiError("The app does not answer.");
  }
  const json: unknown = await answer.json().catch(() => undefined);
  if (answer.ok && json !== undefined) return json as Json;
  throw new ApiError(problemIn(json) ?? `The app answered ${answer.status} ${answer.statusText}.`);
}

const problemIn = (json: unknown): string | undefined => (json as Problem | undefined)?.error?.message;
