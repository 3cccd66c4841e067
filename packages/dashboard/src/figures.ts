import type { Watch } from "./collect/watch.js";
import type { History, Range, Scope } from "./contract.js";
import type { Send } from "./share/redis.js";
import { type Reports, Share } from "./share/share.js";

const defaultPrefix = "floodgate:dashboard";

/** The figures of this process; with a Redis, those of all processes that share it. */
export class Figures {
  readonly #watch: Watch;
  readonly #share: Share | undefined;
  #last: Reports;

  /** @param send undefined without a Redis. */
  constructor(watch: Watch, send: Send | undefined, prefix: string = defaultPrefix) {
    this.#watch = watch;
    this.#share = send && new Share(watch, send, prefix);
    this.#last = this.#own();
  }

  /** The texts of the keys that have ids: those of the sketches. */
  *knownKeys(): Iterable<string> {
    for (const { rejections, requests } of this.#last.reports) {
      for (const { key } of [...rejections.summary.keys, ...requests.summary.keys]) yield key;
    }
  }

  /** Publishes this process's figures. It never fails. */
  async publish(): Promise<void> {
    await this.#share?.publish(Date.now());
  }

  async read(): Promise<Reports> {
    this.#last = this.#share === undefined ? this.#own() : await this.#share.read();
    return this.#last;
  }

  async history(range: Range): Promise<History> {
    return this.#share === undefined ? this.#watch.collector.history(range) : this.#share.history(range, Date.now());
  }

  scope({ reports, trouble }: Reports): Scope {
    const { sinceMs } = reports[0].instance;
    if (this.#share === undefined) return { kind: "process", sinceMs };
    return trouble === undefined ? { kind: "all", sinceMs } : { kind: "process", trouble, sinceMs };
  }

  async close(): Promise<void> {
    await this.#share?.close();
  }

  #own(): Reports {
    return { reports: [this.#watch.report()], trouble: undefined, secret: undefined };
  }
}
