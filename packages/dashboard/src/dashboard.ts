import { decisionOf, warnOnce } from "@floodgate/core/adapter";
import type { InventoryLimit } from "@floodgate/core/rules";
import type { EndedSecond } from "./collect/collector.js";
import { joinWatch } from "./collect/watch.js";
import type { History, KeyAnswer, Overview, Range, RequestAnswer } from "./contract.js";
import { Figures } from "./figures.js";
import { checked, type DashboardOptions } from "./options.js";
import { KeyNames } from "./routes/key-text.js";
import { Keys } from "./routes/keys.js";
import { Live } from "./routes/live.js";
import { overviewOf, rejectionsOf } from "./routes/overview.js";
import { askRequest } from "./routes/request.js";
import { type Data, isKnown, route } from "./routes/router.js";
import type { Reply, View } from "./routes/view.js";
import { Gate } from "./safety/gate.js";
import { senderOf } from "./share/redis.js";
import type { Reports } from "./share/share.js";

/** A dashboard without its framework: answers requests, and tells open pages each second what has changed. */
export class Dashboard<Req> implements Data {
  readonly title: string;
  readonly actions: Data["actions"];
  readonly #showKeys: boolean;
  readonly #who: DashboardOptions<Req>["who"];
  readonly #gate: Gate<Req>;
  readonly #names: KeyNames;
  readonly #figures: Figures;
  readonly #keys: Keys;
  readonly #live = new Live(() => performance.now());
  readonly #leave: () => void;
  #ticking = false;

  /**
   * @param own names of options that only this framework has.
   * @param example how an app of this framework writes `authorize`.
   * @throws FloodgateError if an option is invalid.
   */
  constructor(options: DashboardOptions<Req>, own: readonly string[], example: string) {
    const { authorize, actions = false, who, showKeys = false, title = "Floodgate" } = checked(options, own, example);
    const send = options.redis === undefined ? undefined : senderOf(options.redis);
    this.title = title;
    this.#showKeys = showKeys;
    this.#who = who;
    this.#gate = new Gate(authorize, example);
    this.#names = new KeyNames(showKeys);
    const { watch, leave } = joinWatch();
    this.#figures = new Figures(watch, send, options.prefix);
    const limits = (): readonly InventoryLimit[] => {
      watch.inUse.refresh();
      return watch.inUse.limits;
    };
    const keys = new Keys(limits, this.#names, {
      keys: () => this.#knownKeys(),
      rejections: async () => {
        const { reports } = await this.#figures.read();
        return (rule, key) => rejectionsOf(reports, rule, key);
      },
    });
    this.#keys = keys;
    this.actions = actions
      ? {
          reset: (body, by) => keys.reset(body, by),
          block: (body, by) => keys.block(body, by),
          unblock: (body, by) => keys.unblock(body, by),
          grant: (body, by) => keys.grant(body, by),
          revoke: (body, by) => keys.revoke(body, by),
        }
      : undefined;
    const stop = watch.eachSecond((ended) => void this.#endSecond(ended));
    this.#leave = () => {
      stop();
      leave();
    };
  }

  /** Answers a request; undefined if the app shall go on as if nothing was mounted here. */
  async handle(view: View, request: Req): Promise<Reply | undefined> {
    if (!isKnown(view.path) || !(await this.#gate.admits(view, request))) return undefined;
    const decision = decisionOf(view.identity);
    if (decision !== undefined) {
      warnOnce(
        "FLOODGATE_DASHBOARD_LIMITED",
        `requests for the dashboard are counted by the limit ${JSON.stringify(decision.name)}, because the dashboard is mounted after it. To leave them out, mount the dashboard before the limit.`,
      );
    }
    return route(view, this, () => this.#who?.(request) ?? "dashboard");
  }

  async overview(): Promise<Overview> {
    return this.#overviewOf(await this.#figures.read());
  }

  history(range: Range): Promise<History> {
    return this.#figures.history(range);
  }

  live(): Reply {
    return this.#live.open();
  }

  key(body: Record<string, unknown>): Promise<KeyAnswer> {
    return this.#keys.lookUp(body);
  }

  request(body: Record<string, unknown>): Promise<RequestAnswer> {
    return askRequest(body, (key) => this.#names.shown(key));
  }

  close(): void {
    this.#live.close();
    this.#leave();
    void this.#figures.close();
  }

  /** Publishes a second that has ended, and sends it to the open pages. */
  async #endSecond(ended: readonly EndedSecond[]): Promise<void> {
    // The last second is not finished yet: Redis is slow.
    if (this.#ticking) return;
    this.#ticking = true;
    try {
      await this.#figures.publish();
      if (this.#live.size === 0) this.#figures.pause();
      else {
        const read = await this.#figures.read();
        this.#live.tick(this.#figures.unsent(ended, read), this.#overviewOf(read));
      }
    } catch {
      // What another process wrote cannot be shown. The next second may be better.
    } finally {
      this.#ticking = false;
    }
  }

  #overviewOf(read: Reports): Overview {
    if (read.secret !== undefined) this.#names.use(read.secret);
    return overviewOf({
      title: this.title,
      nowMs: Date.now(),
      capabilities: { actions: this.actions !== undefined, keys: this.#showKeys ? "shown" : "masked" },
      scope: this.#figures.scope(read),
      reports: read.reports,
      names: this.#names,
    });
  }

  /** The texts of the keys that have ids: those of the sketches. */
  *#knownKeys(): Iterable<string> {
    for (const { rejections, requests } of this.#figures.last.reports) {
      for (const { key } of [...rejections.summary.keys, ...requests.summary.keys]) yield key;
    }
  }
}
