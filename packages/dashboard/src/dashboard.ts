import { decisionOf, warnOnce } from "@floodgate/core/adapter";
import type { InventoryLimit } from "@floodgate/core/rules";
import { joinWatch, type Watch } from "./collect/watch.js";
import type { History, KeyAnswer, Overview, Range } from "./contract.js";
import { checked, type DashboardOptions } from "./options.js";
import { KeyNames } from "./routes/key-names.js";
import { Keys } from "./routes/keys.js";
import { Live } from "./routes/live.js";
import { overviewOf } from "./routes/overview.js";
import { type Data, isKnown, route } from "./routes/router.js";
import type { Answer, View } from "./routes/view.js";
import { Gate } from "./safety/gate.js";

/** A dashboard without its framework: answers requests, and tells open pages each second what has changed. */
export class Dashboard<Req> implements Data {
  readonly title: string;
  readonly #gate: Gate<Req>;
  readonly #names: KeyNames;
  readonly #options: DashboardOptions<Req>;
  readonly #watch: Watch;
  readonly #live = new Live(() => Date.now());
  readonly #leave: () => void;
  readonly #keys: Keys;
  readonly actions: Data["actions"];

  /**
   * @param own names of options that only this framework has.
   * @param example how an app of this framework writes `authorize`.
   * @throws FloodgateError if an option is invalid.
   */
  constructor(options: DashboardOptions<Req>, own: readonly string[], example: string) {
    this.#options = checked(options, own, example);
    this.title = options.title ?? "Floodgate";
    this.#gate = new Gate(options.authorize, example);
    this.#names = new KeyNames(options.showKeys === true);
    const { watch, leave } = joinWatch();
    this.#watch = watch;
    const limits = (): readonly InventoryLimit[] => {
      watch.inUse.refresh();
      return watch.inUse.limits;
    };
    const keys = new Keys(limits, this.#names, () => this.#knownKeys());
    this.#keys = keys;
    if (options.actions === true) {
      this.actions = { reset: (body) => keys.reset(body), block: (body) => keys.block(body), unblock: (body) => keys.unblock(body) };
    }
    const stop = watch.eachSecond((ended) => {
      if (this.#live.size > 0) this.#live.tick(ended, this.overview());
    });
    this.#leave = () => {
      stop();
      leave();
    };
  }

  /** Answers a request; undefined if the app shall go on as if nothing was mounted here. */
  async handle(view: View, request: Req): Promise<Answer | undefined> {
    if (!isKnown(view.path) || !(await this.#gate.admits(view, request))) return undefined;
    const decision = decisionOf(view.identity);
    if (decision !== undefined) {
      warnOnce(
        "FLOODGATE_DASHBOARD_LIMITED",
        `requests for the dashboard are counted by the limit ${JSON.stringify(decision.name)}, because the dashboard is mounted after it. To leave them out, mount the dashboard before the limit.`,
      );
    }
    return route(view, this);
  }

  overview(): Overview {
    const report = this.#watch.report();
    return overviewOf({
      title: this.title,
      nowMs: Date.now(),
      capabilities: { actions: this.actions !== undefined, keys: this.#options.showKeys === true ? "shown" : "masked" },
      scope: { kind: "process", sinceMs: report.instance.sinceMs },
      reports: [report],
      names: this.#names,
    });
  }

  history(range: Range): History {
    return this.#watch.collector.history(range);
  }

  live(): Answer {
    return this.#live.open();
  }

  key(body: Record<string, unknown>): Promise<KeyAnswer> {
    return this.#keys.lookUp(body);
  }

  /** The texts of the keys in the sketches. */
  *#knownKeys(): Iterable<string> {
    const { requests, rejections } = this.#watch.collector;
    for (const { key } of [...rejections.summary().keys, ...requests.summary().keys]) yield key;
  }

  close(): void {
    this.#live.close();
    this.#leave();
  }
}
