import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { observe } from "@floodgate/core";
import { warnOnce } from "@floodgate/core/rules";
import { wholeRequests } from "../contract.js";
import { textOf } from "../text.js";
import { Collector, type EndedSecond } from "./collector.js";
import { InUse } from "./in-use.js";
import type { Report } from "./report.js";
import type { Summary } from "./sketch.js";

/** Called once a second, with the seconds that have ended since. */
export type SecondListener = (ended: readonly EndedSecond[]) => void;

const host = hostName();

/** Deno tells the name with --allow-sys=hostname only. */
function hostName(): string {
  try {
    return hostname();
  } catch {
    return "this machine";
  }
}

/** A little after the second, so that the timer is never early. */
const afterMs = 10;

/** Seconds that a report remembers. Dashboards of other processes read them a few seconds late. */
const maxRecent = 15;

/** Watches this process: counts its events, and tells dashboards when a second has ended. */
export class Watch {
  readonly id: string = randomUUID();
  readonly inUse: InUse = new InUse();
  readonly collector: Collector;
  readonly #clock: () => number;
  readonly #listeners = new Set<SecondListener>();
  readonly #stop: () => void;
  #timer: NodeJS.Timeout | undefined;
  #recent: readonly EndedSecond[] = [];

  constructor(clock: () => number = () => Date.now()) {
    this.#clock = clock;
    this.collector = new Collector(clock, this.inUse.countsOf);
    this.#stop = observe(this.collector.listen);
    this.#schedule();
  }

  /** Adds a listener. Returns a function that removes it. Without the last one, the watch ends. */
  eachSecond(listener: SecondListener): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.close();
    };
  }

  /** Tells the listeners the seconds that have ended. */
  tick(): void {
    this.inUse.refresh();
    const ended = this.collector.takeEnded();
    if (ended.length === 0) return;
    this.#recent = [...this.#recent, ...ended].slice(-maxRecent);
    for (const listener of this.#listeners) listener(ended);
  }

  report(): Report {
    const { collector, inUse } = this;
    const nowMs = collector.moveToNow();
    const { sinceMs, requests, rejections } = collector;
    inUse.refresh();
    return {
      instance: { id: this.id, name: `${host} (pid ${process.pid})`, sinceMs, perSecond: requestsIn(this.#recent.at(-1)) },
      rules: inUse.rules(),
      totals: collector.totals(),
      requests: { sinceMs: requests.since(sinceMs), summary: this.#marked(requests.summary()) },
      rejections: { sinceMs: rejections.since(sinceMs), summary: this.#marked(rejections.summary()) },
      stores: inUse.stores(nowMs),
      sources: inUse.sources(),
      recent: this.#recent,
    };
  }

  /** The keys with their blocks and bans. */
  #marked(summary: Summary): Summary {
    const keys = summary.keys.map((counter) => {
      const blocked = this.collector.blockOf(counter.rule, counter.key);
      return blocked === undefined ? counter : { ...counter, blocked };
    });
    return { ...summary, keys };
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#stop();
    if (current === this) current = undefined;
  }

  #schedule(): void {
    const waitMs = 1000 - (this.#clock() % 1000) + afterMs;
    this.#timer = setTimeout(() => {
      try {
        this.tick();
      } catch (error) {
        // A store or a source of the app's own may throw when it is asked for its size or version. That must not end the process.
        warnOnce("FLOODGATE_DASHBOARD_FAILED", `the dashboard cannot read what is in use. Requests are not affected. ${textOf(error)}`);
      }
      this.#schedule();
    }, waitMs);
    // It keeps no process alive.
    this.#timer.unref();
  }
}

function requestsIn(second: EndedSecond | undefined): number {
  const whole = second?.counts.find(({ rule }) => rule === wholeRequests);
  const all = Object.values(whole?.counts ?? {});
  return all.reduce((sum, count) => sum + count, 0);
}

let current: Watch | undefined;

/** The watch of this process. It starts with the first dashboard, and ends when all of them have left. */
export function joinWatch(listener: SecondListener): { readonly watch: Watch; leave(): void } {
  current ??= new Watch();
  return { watch: current, leave: current.eachSecond(listener) };
}
