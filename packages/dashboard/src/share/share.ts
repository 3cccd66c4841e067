import { randomBytes } from "node:crypto";
import type { Report } from "../collect/report.js";
import { maxExtra, rangeNames, ranges } from "../collect/ring.js";
import { mergeSummaries } from "../collect/sketch.js";
import type { Watch } from "../collect/watch.js";
import type { History, Range, Scope } from "../contract.js";
import { textOf } from "../text.js";
import { mergeHistories } from "./merge.js";
import { receivedHistory, receivedReport } from "./received.js";
import type { Send } from "./redis.js";

const defaultPrefix = "floodgate:dashboard";
const publishedCounters = 128;

/** A process that has not published for this long has gone. */
const aliveMs = 5000;

/** A process publishes a second a moment after it ended, so sums are complete this much later. */
const delayMs = 3000;

/** Histories that are read of one range, gone processes included. */
const maxHistories = 200;

const secretMs = 7 * 86_400_000;

/** Another version of the package may publish another form, so its keys have another number. */
const version = 2;

export interface Reports {
  /** This process's first. */
  readonly reports: readonly [Report, ...Report[]];
  /** Why there are no reports of others. */
  readonly trouble: string | undefined;
  /** The same in all processes. Undefined if it is not known. */
  readonly secret: string | undefined;
}

/**
 * The figures of this process; with a Redis, those of all processes that share it. Each process writes a summary once a second, under a key that
 * expires. After a process has ended, what it counted stays in the sums of the hour and the day. All keys have one Cluster slot.
 */
export class Share {
  readonly #watch: Watch;
  readonly #send: Send;
  readonly #isShared: boolean;
  readonly #prefix: string;
  /** What a user of Redis must be allowed. */
  readonly #rights: string;
  readonly #secret = randomBytes(32).toString("base64url");
  readonly #published = new Map<Range, number>();
  /** Why the last publication failed. */
  #failure: unknown;
  #last: Reports;
  #closed = false;

  /** @param send undefined without a Redis. */
  constructor(watch: Watch, send: Send | undefined, prefix: string = defaultPrefix) {
    this.#watch = watch;
    this.#isShared = send !== undefined;
    this.#send = send ?? (async () => undefined);
    this.#prefix = `{${prefix}}:${version}`;
    this.#rights = `~{${prefix}}:* +del +get +mget +pexpire +sadd +set +smembers +srem`;
    this.#last = alone(watch.report());
  }

  /** The texts of the keys that have ids: those of the sketches. */
  *knownKeys(): Iterable<string> {
    for (const { rejections, requests } of this.#last.reports) {
      for (const { key } of [...rejections.summary.keys, ...requests.summary.keys]) yield key;
    }
  }

  /** Writes this process's figures. Failures are shown by the next read. */
  async publish(nowMs: number): Promise<void> {
    if (this.#closed || !this.#isShared) return;
    try {
      const report = this.#watch.report();
      await Promise.all([
        this.#write("instance", report.instance.id, published(report), aliveMs),
        this.#set("secret", this.#secret, secretMs, "NX"),
        ...rangeNames.map((range) => this.#publishHistory(range, nowMs)),
      ]);
      this.#failure = undefined;
    } catch (error) {
      // The dashboard shows the error, and the app goes on.
      this.#failure = error;
    }
  }

  /** The figures of all processes, or of this one if Redis fails. */
  async read(): Promise<Reports> {
    const own = this.#watch.report();
    this.#last = this.#isShared ? await this.#readOthers(own) : alone(own);
    return this.#last;
  }

  async #readOthers(own: Report): Promise<Reports> {
    try {
      // A full Redis, a replica, and a user without some commands may let us read what they do not let us write.
      if (this.#failure !== undefined) throw this.#failure;
      const secret = await this.#send(this.#key("secret"), "GET");
      const others = await this.#readAll("instance", own.instance.id, receivedReport);
      others.sort((a, b) => a.instance.sinceMs - b.instance.sinceMs || (a.instance.id < b.instance.id ? -1 : 1));
      return { reports: [own, ...others], trouble: undefined, secret: typeof secret === "string" ? secret : undefined };
    } catch (error) {
      const text = textOf(error);
      const advice = text.includes("NOPERM") ? `. Allow it: ACL SETUSER <user> ${this.#rights}. See docs/redis.md.` : "";
      return alone(own, `Redis failed: ${text}${advice}`);
    }
  }

  async history(range: Range, nowMs: number): Promise<History> {
    if (!this.#isShared) return this.#watch.collector.history(range);
    const own = this.#watch.collector.history(range, maxExtra);
    const others = await this.#readAll(range, this.#watch.id, (text) => receivedHistory(range, text)).catch(() => []);
    return mergeHistories(range, nowMs - delayMs, [own, ...others]);
  }

  scope({ reports, trouble }: Reports): Scope {
    const { sinceMs } = reports[0].instance;
    return { kind: this.#isShared && trouble === undefined ? "all" : "process", trouble, sinceMs };
  }

  /** Takes this process out of the list at once. Its history stays. */
  async close(): Promise<void> {
    this.#closed = true;
    const { id } = this.#watch;
    await Promise.all([this.#send(this.#key("instance", id), "DEL"), this.#send(this.#key("instance"), "SREM", id)]).catch(() => undefined);
  }

  /** Writes a range when its newest step has ended, and at the first time. */
  async #publishHistory(range: Range, nowMs: number): Promise<void> {
    const { stepMs, points } = ranges[range];
    const step = Math.floor(nowMs / stepMs);
    if (this.#published.get(range) === step) return;
    await this.#write(
      range,
      this.#watch.id,
      this.#watch.collector.history(range, maxExtra),
      range === "minute" ? aliveMs : stepMs * points,
    );
    this.#published.set(range, step);
  }

  async #write(kind: string, id: string, value: unknown, forMs: number): Promise<void> {
    await Promise.all([
      this.#set(`${kind}:${id}`, JSON.stringify(value), forMs),
      this.#send(this.#key(kind), "SADD", id),
      this.#send(this.#key(kind), "PEXPIRE", String(2 * 86_400_000)),
    ]);
  }

  #set(name: string, value: string, forMs: number, ...more: string[]): Promise<unknown> {
    return this.#send(this.#key(name), "SET", value, "PX", String(forMs), ...more);
  }

  /** What the other processes have written, as far as it can be shown. Forgets those whose key has expired. */
  async #readAll<T>(kind: string, ownId: string, received: (text: string) => T | undefined): Promise<T[]> {
    const ids = ((await this.#send(this.#key(kind), "SMEMBERS")) as string[]).filter((id) => id !== ownId).slice(0, maxHistories);
    const [first, ...rest] = ids.map((id) => this.#key(kind, id));
    if (first === undefined) return [];
    const texts = (await this.#send(first, "MGET", ...rest)) as (string | null)[];
    const gone = ids.filter((_, i) => texts[i] === null);
    if (gone.length > 0) await this.#send(this.#key(kind), "SREM", ...gone);
    return texts.flatMap((text) => (text === null ? [] : (received(text) ?? [])));
  }

  #key(...parts: string[]): string {
    return [this.#prefix, ...parts].join(":");
  }
}

function alone(own: Report, trouble?: string): Reports {
  return { reports: [own], trouble, secret: undefined };
}

/** A report that is short enough to be sent each second. */
function published(report: Report): Report {
  const cut = ({ sinceMs, summary }: Report["requests"]): Report["requests"] => ({
    sinceMs,
    summary: mergeSummaries([summary], publishedCounters),
  });
  return { ...report, requests: cut(report.requests), rejections: cut(report.rejections) };
}
