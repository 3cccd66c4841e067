import { rangeNames } from "../collect/ring.js";
import type { Range } from "../contract.js";
import { bodyOf, jsonReply, Refusal } from "./json.js";
import { pageReply } from "./page.js";
import type { Reply, View } from "./view.js";

export interface Data {
  readonly title: string;
  overview(): unknown;
  history(range: Range): unknown;
  /** @throws Refusal if too many streams are open. */
  live(): Reply;
  key(body: Record<string, unknown>): Promise<unknown>;
  request(body: Record<string, unknown>): Promise<unknown>;
  /** Undefined if actions are not allowed. */
  readonly actions: Readonly<Record<string, (body: Record<string, unknown>, by: string) => Promise<unknown>>> | undefined;
}

type Route = (view: View, data: Data, who: () => string) => Reply | Promise<Reply>;

const gets: ReadonlyMap<string, Route> = new Map<string, Route>([
  ["/", (_, { title }) => pageReply(title)],
  ["/data/overview", async (_, data) => jsonReply(await data.overview())],
  ["/data/history", async (view, data) => jsonReply(await data.history(rangeOf(view)))],
  ["/data/live", (_, data) => data.live()],
]);

const posts: ReadonlyMap<string, Route> = new Map<string, Route>([
  ["/data/key", async (view, data) => jsonReply(await data.key(await bodyOf(view)))],
  ["/data/request", async (view, data) => jsonReply(await data.request(await bodyOf(view)))],
  ...["reset", "block", "unblock", "grant", "revoke"].map((name): [string, Route] => [
    `/actions/${name}`,
    async (view, data, who) => {
      const act = data.actions?.[name];
      if (act === undefined) {
        throw new Refusal(
          403,
          "forbidden",
          "This dashboard is read-only. The app allows actions with dashboard({ actions: true, authorize }).",
        );
      }
      return jsonReply(await act(await bodyOf(view), who()));
    },
  ]),
]);

/** Whether an address below the mount path belongs to the dashboard. The app serves all others. */
export function isKnown(path: string): boolean {
  return path === "" || gets.has(path) || posts.has(path);
}

/**
 * Answers a request that may see the dashboard; undefined if nothing is at its address.
 * @param who names who acts.
 */
export async function route(view: View, data: Data, who: () => string): Promise<Reply | undefined> {
  const path = view.path === "" ? "/" : view.path;
  try {
    return await routed(view, data, path, who);
  } catch (error) {
    if (error instanceof Refusal) return error.answer();
    throw error;
  }
}

function routed(view: View, data: Data, path: string, who: () => string): Reply | undefined | Promise<Reply> {
  const { method } = view;
  const post = posts.get(path);
  if (post !== undefined) return method === "POST" ? post(view, data, who) : refuseMethod("POST");
  const get = gets.get(path);
  if (get === undefined) return undefined;
  if (method !== "GET" && method !== "HEAD") return refuseMethod("GET, HEAD");
  if (path !== "/") refuseOtherSites(view);
  // An open stream would be of no use.
  if (method === "HEAD" && path === "/data/live") return { ...jsonReply({}), body: "" };
  return get(view, data, who);
}

/** A page of another site could hold streams open, though it can read nothing. @throws Refusal */
function refuseOtherSites(view: View): void {
  const site = view.header("sec-fetch-site") ?? "none";
  if (site === "same-origin" || site === "none") return;
  throw new Refusal(403, "forbidden", "Pages of other sites may not ask for this.");
}

function refuseMethod(allow: string): Reply {
  return new Refusal(405, "method", `This address takes ${allow}.`, [["Allow", allow]]).answer();
}

/** @throws Refusal */
function rangeOf({ query }: View): Range {
  // Nobody writes a longer query, and parsing one takes time.
  const range = query.length > 100 ? "" : (new URLSearchParams(query).get("range") ?? "minute");
  if ((rangeNames as string[]).includes(range)) return range as Range;
  throw new Refusal(400, "invalid", `\`range\` must be one of ${rangeNames.join(", ")}.`);
}
