import { decisionOf, warnOnce } from "@floodgate/core/adapter";
import { rangeNames } from "./collect/ring.js";
import { joinWatch } from "./collect/watch.js";
import type { LiveFigures, Overview, Range } from "./contract.js";
import { checked, type DashboardOptions } from "./options.js";
import { bodyOf, jsonReply, Refusal } from "./routes/json.js";
import { KeyLabels } from "./routes/key-labels.js";
import { type ActionName, Keys } from "./routes/keys.js";
import { Live } from "./routes/live.js";
import { overviewOf } from "./routes/overview.js";
import { pageReply } from "./routes/page.js";
import { askRequest } from "./routes/request.js";
import type { Reply, View } from "./routes/view.js";
import { gateOf } from "./safety/gate.js";
import { senderOf } from "./share/redis.js";
import { Share } from "./share/share.js";

/** A dashboard without its framework: answers requests, and tells open pages each second what has changed. */
export class Dashboard<Req> {
  readonly title: string;
  readonly figures: Share;
  readonly keys: Keys;
  readonly labels: KeyLabels;
  readonly live: Live = new Live(() => performance.now());
  readonly mayAct: boolean;
  readonly #options: DashboardOptions<Req>;
  readonly #admits: (view: View, request: Req) => Promise<boolean>;
  readonly #leave: () => void;
  #ticking = false;

  /**
   * @param own names of options that only this framework has.
   * @param example how an app of this framework writes `authorize`.
   * @param advice how to let more people in, in place of `authorize`.
   * @throws FloodgateError if an option is invalid.
   */
  constructor(options: DashboardOptions<Req>, own: readonly string[], example: string, advice?: string) {
    const { actions = false, showKeys = false, title = "Floodgate", redis, prefix } = checked(options, own, example);
    const send = redis === undefined ? undefined : senderOf(redis);
    this.title = title;
    this.mayAct = actions;
    this.#options = { ...options };
    this.#admits = gateOf(options.authorize, example, advice);
    this.labels = new KeyLabels(showKeys);
    const { watch, leave } = joinWatch(() => void this.#endSecond());
    this.figures = new Share(watch, send, prefix);
    this.keys = new Keys(watch.inUse, this.figures, this.labels);
    this.#leave = leave;
  }

  /** Answers a request; undefined if the app shall go on as if nothing was mounted here. */
  async handle(view: View, request: Req): Promise<Reply | undefined> {
    const { who } = this.#options;
    // The app serves all other addresses.
    if (!(view.path === "" || Object.hasOwn(gets, view.path) || Object.hasOwn(posts, view.path))) return undefined;
    if (!(await this.#admits(view, request))) return undefined;
    const decision = decisionOf(view.identity);
    if (decision !== undefined) {
      warnOnce(
        "FLOODGATE_DASHBOARD_LIMITED",
        `requests for the dashboard are counted by the limit ${JSON.stringify(decision.name)}, because the dashboard is mounted after it. To leave them out, mount the dashboard before the limit.`,
      );
    }
    try {
      return await replyTo(view, this, () => who?.(request) ?? "dashboard");
    } catch (error) {
      if (error instanceof Refusal) return error.reply;
      throw error;
    }
  }

  async overview(): Promise<Overview> {
    const read = await this.figures.read();
    if (read.secret !== undefined) this.labels.use(read.secret);
    return overviewOf({
      title: this.title,
      nowMs: Date.now(),
      capabilities: { actions: this.mayAct, keys: this.#options.showKeys ? "shown" : "masked" },
      scope: this.figures.scope(read),
      reports: read.reports,
      labels: this.labels,
    });
  }

  async liveFigures(): Promise<LiveFigures> {
    const [overview, minute] = await Promise.all([this.overview(), this.figures.history("minute", Date.now())]);
    return { overview, minute };
  }

  close(): void {
    this.live.close();
    this.#leave();
    void this.figures.close();
  }

  /** Publishes the figures of this process after each second, and sends all figures to the open pages. */
  async #endSecond(): Promise<void> {
    // The last second is not finished yet: Redis is slow.
    if (this.#ticking) return;
    this.#ticking = true;
    try {
      await this.figures.publish(Date.now());
      if (this.live.size > 0) this.live.send(await this.liveFigures());
    } catch {
      // What another process wrote cannot be shown. The next second may be better.
    } finally {
      this.#ticking = false;
    }
  }
}

type Route = (view: View, own: Dashboard<never>, who: () => string) => Reply | Promise<Reply>;

const gets: Readonly<Record<string, Route>> = {
  "/": (_, { title }) => pageReply(title),
  "/data/overview": async (_, own) => jsonReply(await own.overview()),
  "/data/history": async (view, { figures }) => jsonReply(await figures.history(rangeOf(view), Date.now())),
  "/data/live": async (view, own) => own.live.open(view, await own.liveFigures()),
};

const act =
  (name: ActionName): Route =>
  async (view, { keys, mayAct }, who) => {
    if (mayAct) return jsonReply(await keys.actions[name](await bodyOf(view), who()));
    const why =
      "This dashboard is read-only. An app allows actions with dashboard({ actions: true, authorize }), floodgate serve and gateway with the setting `dashboardActions`.";
    throw new Refusal(403, "forbidden", why);
  };

const posts: Readonly<Record<string, Route>> = {
  "/data/key": async (view, { keys }) => jsonReply(await keys.lookUp(await bodyOf(view))),
  "/data/request": async (view, { labels }) => jsonReply(await askRequest(await bodyOf(view), labels)),
  "/actions/reset": act("reset"),
  "/actions/block": act("block"),
  "/actions/unblock": act("unblock"),
  "/actions/grant": act("grant"),
  "/actions/revoke": act("revoke"),
};

/** Answers a request that may see the dashboard. @throws Refusal */
function replyTo(view: View, own: Dashboard<never>, who: () => string): Reply | Promise<Reply> {
  const { method } = view;
  const path = view.path === "" ? "/" : view.path;
  const post = posts[path];
  if (post !== undefined) return method === "POST" ? post(view, own, who) : refuseMethod("POST");
  if (method !== "GET" && method !== "HEAD") return refuseMethod("GET, HEAD");
  if (path !== "/") refuseOtherSites(view);
  // An open stream would be of no use.
  if (method === "HEAD" && path === "/data/live") return { ...jsonReply({}), body: "" };
  return (gets[path] as Route)(view, own, who);
}

/** A page of another site could hold streams open, though it can read nothing. @throws Refusal */
function refuseOtherSites(view: View): void {
  const site = view.header("sec-fetch-site") ?? "none";
  if (site === "same-origin" || site === "none") return;
  throw new Refusal(403, "forbidden", "Pages of other sites may not ask for this.");
}

function refuseMethod(allow: string): Reply {
  return new Refusal(405, "method", `This address takes ${allow}.`, [["Allow", allow]]).reply;
}

/** @throws Refusal */
function rangeOf({ query }: View): Range {
  // Nobody writes a longer query, and parsing one takes time.
  const range = query.length > 100 ? "" : (new URLSearchParams(query).get("range") ?? "minute");
  if ((rangeNames as string[]).includes(range)) return range as Range;
  throw new Refusal(400, "invalid", `\`range\` must be one of ${rangeNames.join(", ")}.`);
}
