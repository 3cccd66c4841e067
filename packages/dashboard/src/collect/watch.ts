import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { observe } from "@floodgate/core";
import { warnOnce } from "@floodgate/core/rules";
import { textOf } from "../text.js";
import { Collector } from "./collector.js";
import { InUse } from "./in-use.js";
import type { Report } from "./report.js";
import type { Summary } from "./sketch.js";

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

/** Watches this process: counts its events, and tells dashboards when a second has ended. */
export class Watch {
  readonly id: string = randomUUID();
  readonly inUse: InUse = new InUse();
  readonly collector: Collector;
  readonly #clock: () => number;
  readonly #listeners = new Set<() => void>();
  readonly #stop: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(clock: () => number = () => Date.now()) {
    this.#clock = clock;
    this.collector = new Collector(clock, this.inUse.countsOf);
    this.#stop = observe(this.collector.listen);
    this.#schedule();
  }

  /** Adds a listener, which is called once a second. Returns a function that removes it. Without the last one, the watch ends. */
  eachSecond(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.close();
    };
  }

  /** Ends the second, and calls the listeners. */
  tick(): void {
    this.inUse.refresh();
    this.collector.moveToNow();
    for (const listener of this.#listeners) listener();
  }

  report(): Report {
    const { collector, inUse } = this;
    const nowMs = collector.moveToNow();
    const { sinceMs, perSecond, requests, rejections } = collector;
    inUse.refresh();
    return {
      instance: { id: this.id, name: `${host} (pid ${process.pid})`, sinceMs, perSecond },
      rules: inUse.rules(),
      totals: collector.totals(),
      requests: { sinceMs: requests.since(sinceMs), summary: this.#marked(requests.summary()) },
      rejections: { sinceMs: rejections.since(sinceMs), summary: this.#marked(rejections.summary()) },
      stores: inUse.stores(nowMs),
      sources: inUse.sources(),
    };
  }

  /** The keys with their blocks and bans. */
  #marked(summary: Summary): Summary {
    return {
      ...summary,
      keys: summary.keys.map((counter) => ({ ...counter, blocked: this.collector.blockOf(counter.rule, counter.key) })),
    };
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
    // It keeps no process alive. In jsdom it is a number.
    this.#timer.unref?.();
  }
}

let current: Watch | undefined;

/** The watch of this process. It starts with the first dashboard, and ends when all of them have left. */
export function joinWatch(listener: () => void): { readonly watch: Watch; leave(): void } {
  current ??= new Watch();
  return { watch: current, leave: current.eachSecond(listener) };
}
