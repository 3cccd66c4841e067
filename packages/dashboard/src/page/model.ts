import type { History, Overview, Range, Tick } from "../contract.js";
import { readHistory, readOverview } from "./api.js";
import { placeOf, withTick } from "./history.js";
import { type Connection, followTicks } from "./live.js";

/** What the sections show. */
export interface Figures {
  readonly overview: Overview;
  /** Of the range that was chosen; of the last minute until it is there. */
  readonly history: History;
  /** Bursts are shown by the minute, so a minute is too short for them. */
  readonly hour: History;
  /** By the server's clock. */
  readonly nowMs: number;
}

/** What the app has answered. Sections are told when it changes. */
export class Model {
  range: Range = "minute";
  connection: Connection = "connecting";
  /** Why nothing could be read. */
  trouble: string | undefined;
  #overview: Overview | undefined;
  /** The minute and the hour are always read, the day once it was chosen. */
  readonly #histories: { [R in Range]?: History } = {};
  /** The server's clock minus this browser's. */
  #aheadMs = 0;
  #loading: Promise<void> | undefined;
  #again = false;
  /** Ticks that came while a whole answer was under way. */
  #early: Tick[] = [];
  #drawing = false;
  /** Ranges whose history is being read anew. */
  readonly #following = new Set<Range>();
  readonly #onChange: () => void;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  start(): void {
    followTicks({
      onTick: (tick) => this.#take(tick),
      onGap: () => void this.load(),
      onConnection: (connection) => {
        this.connection = connection;
        this.#changed();
      },
    });
    void this.load();
  }

  /** Undefined until the first answer. */
  get figures(): Figures | undefined {
    const { minute, hour } = this.#histories;
    if (this.#overview === undefined || minute === undefined || hour === undefined) return undefined;
    const history = this.#histories[this.range] ?? minute;
    return { overview: this.#overview, history, hour, nowMs: Date.now() + this.#aheadMs };
  }

  choose(range: Range): void {
    this.range = range;
    if (this.#histories[range] === undefined) void this.load();
    this.#changed();
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

  /** Draws once a frame, and not at all while nobody looks. */
  #changed(): void {
    if (this.#drawing) return;
    this.#drawing = true;
    requestAnimationFrame(() => {
      this.#drawing = false;
      this.#onChange();
    });
  }

  async #read(): Promise<void> {
    this.#early = [];
    const needsDay = this.range === "day" || this.#histories.day !== undefined;
    try {
      const [overview, ...histories] = await Promise.all([
        readOverview(),
        ...(["minute", "hour", ...(needsDay ? (["day"] as const) : [])] as const).map(readHistory),
      ]);
      this.#overview = overview;
      for (const history of histories) this.#histories[history.range] = history;
      this.trouble = undefined;
      this.#aheadMs = overview.nowMs - Date.now();
      for (const tick of this.#early) this.#apply(tick);
    } catch (error) {
      this.trouble = (error as Error).message;
    }
    this.#early = [];
    this.#changed();
  }

  #take(tick: Tick): void {
    if (this.#loading !== undefined) this.#early.push(tick);
    else this.#apply(tick);
    this.#changed();
  }

  #apply(tick: Tick): void {
    const { minute } = this.#histories;
    if (this.#overview === undefined || minute === undefined) return;
    this.#overview = { ...this.#overview, ...tick.changed };
    const place = placeOf(minute, tick);
    if (place === "gap") void this.load();
    if (place !== "next") return;
    this.#histories.minute = withTick(minute, tick);
    for (const range of ["hour", "day"] as const) void this.#followUp(range, tick.secondMs + 1000);
  }

  /** The hour and the day are read anew when a step of theirs has passed. */
  async #followUp(range: "hour" | "day", endMs: number): Promise<void> {
    const known = this.#histories[range];
    if (known === undefined || endMs < known.startMs + (known.points + 1) * known.stepMs || this.#following.has(range)) return;
    this.#following.add(range);
    try {
      this.#histories[range] = await readHistory(range);
      this.#changed();
    } catch {
      // The stream says whether the app is there, and a gap reads everything anew.
    } finally {
      this.#following.delete(range);
    }
  }
}
