import { decisionOf, warnOnce } from "@floodgate/core/adapter";
import { joinWatch, type Watch } from "./collect/watch.js";
import type { History, Overview, Range } from "./contract.js";
import { checked, type DashboardOptions } from "./options.js";
import { Refusal } from "./routes/json.js";
import { KeyNames } from "./routes/key-names.js";
import { keyQuery } from "./routes/key-query.js";
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
  readonly actions: Data["actions"] = undefined;

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

  async key(body: Record<string, unknown>): Promise<unknown> {
    keyQuery(body);
    throw new Refusal(404, "unknown", "Keys cannot be looked up yet.");
  }

  close(): void {
    this.#live.close();
    this.#leave();
  }
}
