import type * as contract from "../contract.js";

/** Works without a trailing slash too, and behind a proxy that changes the path. */
const addressOf = (path: string): URL => new URL(location.origin + location.pathname.replace(/\/?$/, "/") + path);

export const liveAddress = (): URL => addressOf("data/live");

export const readOverview = (): Promise<contract.Overview> => ask("data/overview");

export const readHistory = (range: contract.Range): Promise<contract.History> => ask(`data/history?range=${range}`);

export const readKey = (query: contract.KeyQuery): Promise<contract.KeyAnswer> => ask("data/key", query);

export const askRequest = (query: contract.RequestQuery): Promise<contract.RequestAnswer> => ask("data/request", query);

interface Targets {
  readonly reset: contract.KeyTarget;
  readonly block: contract.BlockTarget;
  readonly unblock: contract.KeyTarget;
  readonly grant: contract.GrantTarget;
  readonly revoke: contract.KeyTarget;
}

export const act = <Action extends keyof Targets>(action: Action, target: Targets[Action]): Promise<contract.KeyAnswer> =>
  ask(`actions/${action}`, target);

/** @throws Error whose message is for a person. */
async function ask<Json>(path: string, body?: unknown): Promise<Json> {
  const post = { method: "POST", body: JSON.stringify(body), headers: { accept: "application/json", "content-type": "application/json" } };
  const request = body === undefined ? { headers: { accept: "application/json" } } : post;
  let answer: Response;
  try {
    answer = await fetch(addressOf(path), { ...request, cache: "no-store", signal: AbortSignal.timeout(15_000) });
  } catch {
    throw new Error("The app does not answer.");
  }
  const json: unknown = await answer.json().catch(() => undefined);
  if (answer.ok && json !== undefined) return json as Json;
  if (answer.ok) throw new Error("The answer is cut off, or it is not from the dashboard. Reload the page.");
  throw new Error((json as contract.Problem | undefined)?.error?.message ?? `The app answered ${answer.status} ${answer.statusText}.`);
}
