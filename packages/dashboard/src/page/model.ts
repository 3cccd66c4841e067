import type { History, Overview, Range, Tick } from "../contract.js";
import { readHistory, readOverview } from "./api.js";
import { placeOf, withTick } from "./history.js";
import { type Connection, Live } from "./live.js";

/** What the page shows. Sections read it and are told when it changes. */
export class Model {
  overview: Overview | undefined;
  /** The last minute, second by second: always there, whatever range is chosen. */
  minute: History | undefined;
  /** The last hour: bursts are shown by the minute, so a minute is too short for them. */
  hour: History | undefined;
  day: History | undefined;
  range: Range = "minute";
  /** The rule that the charts show. Undefined: all. */
  rule: string | undefined;
  connection: Connection = "connecting";
  /** Why nothing could be read. */
  trouble: string | undefined;
  /** The server's clock minus this browser's. */
  #aheadMs = 0;
  #loading: Promise<void> | undefined;
  #again = false;
  /** Ticks that came while a whole answer was under way. */
  #early: Tick[] = [];
  #drawing = false;
  readonly #listeners: (() => void)[] = [];

  start(): void {
    new Live({
      onTick: (tick) => this.#take(tick),
      onGap: () => void this.load(),
      onConnection: (connection) => {
        this.connection = connection;
        this.changed();
      },
    }).start();
    void this.load();
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Tells the sections once a frame, and not at all while nobody looks. */
  changed(): void {
    if (this.#drawing) return;
    this.#drawing = true;
    requestAnimationFrame(() => {
      this.#drawing = false;
      for (const listener of this.#listeners) listener();
    });
  }

  get history(): History | undefined {
    return this[this.range];
  }

  now(): number {
    return Date.now() + this.#aheadMs;
  }

  choose(choice: { readonly range?: Range; readonly rule?: string | undefined }): void {
    if ("rule" in choice) this.rule = choice.rule;
    if (choice.range !== undefined) {
      this.range = choice.range;
      if (this.history === undefined) void this.load();
    }
    this.changed();
  }

  /** Reads everything anew. Calls that come meanwhile are served by one more reading. */
  load(): Promise<void> {
    if (this.#loading !== undefined) this.#again = true;
    this.#loading ??= this.#read().finally(() => {
      this.#loading = undefined;
      if (!this.#again) return;
      this.#again = false;
      void this.load();
    });
    return this.#loading;
  }

  async #read(): Promise<void> {
    this.#early = [];
    try {
      const [overview, minute, hour, day] = await Promise.all([
        readOverview(),
        readHistory("minute"),
        readHistory("hour"),
        this.range === "day" || this.day !== undefined ? readHistory("day") : undefined,
      ]);
      this.overview = overview;
      Object.assign(this, { minute, hour, day, trouble: undefined });
      this.#aheadMs = overview.nowMs - Date.now();
      for (const tick of this.#early) this.#apply(tick);
    } catch (error) {
      this.trouble = (error as Error).message;
    }
    this.#early = [];
    this.changed();
  }

  #take(tick: Tick): void {
    if (this.#loading !== undefined) this.#early.push(tick);
    else this.#apply(tick);
    this.changed();
  }

  #apply(tick: Tick): void {
    if (this.overview === undefined || this.minute === undefined) return;
    this.overview = { ...this.overview, ...tick.changed };
    const place = placeOf(this.minute, tick);
    if (place === "gap") void this.load();
    if (place !== "next") return;
    this.minute = withTick(this.minute, tick);
    const endMs = tick.secondMs + 1000;
    for (const range of ["hour", "day"] as const) void this.#followUp(range, endMs);
  }

  /** The hour and the day are read anew when a step of theirs has passed. */
  async #followUp(range: "hour" | "day", endMs: number): Promise<void> {
    const known = this[range];
    if (known === undefined || endMs < known.startMs + (known.points + 1) * known.stepMs) return;
    // Not asked for twice while the answer is under way.
    this[range] = { ...known, startMs: known.startMs + known.stepMs, rules: known.rules.map(shifted) };
    try {
      this[range] = await readHistory(range);
      this.changed();
    } catch {
      // The stream says whether the app is there, and a gap reads everything anew.
    }
  }
}

const shifted = (rule: History["rules"][number]): History["rules"][number] => ({
  ...rule,
  series: Object.fromEntries(Object.entries(rule.series).map(([result, counts]) => [result, [...(counts ?? []).slice(1), 0]])),
});
