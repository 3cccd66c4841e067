import type { History, LiveFigures, Overview, Range } from "../contract.js";
import { readHistory, readOverview } from "./api.js";
import { type Connection, followFigures } from "./live.js";

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

/** The ranges that the stream does not send. */
type LongRange = Exclude<Range, "minute">;

/** What the app has answered. Sections are told when it changes. */
export class Model {
  range: Range = "minute";
  connection: Connection = "connecting";
  /** Why nothing could be read. */
  trouble: string | undefined = undefined;
  #newest: LiveFigures | undefined;
  /** The hour is always read, the day once it was chosen. */
  readonly #longer: { [R in LongRange]?: History } = {};
  readonly #reading = new Set<LongRange>();
  /** The server's clock minus this browser's. */
  #aheadMs = 0;
  #drawing = false;
  readonly #onChange: () => void;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  start(): void {
    followFigures(
      (figures) => this.#take(figures),
      (connection) => {
        this.connection = connection;
        // It may be another process, which has counted other requests.
        if (connection === "live") for (const range of this.#longRanges()) void this.#read(range);
        // A proxy may hold the stream back, and a stream does not say why it cannot be opened.
        if (connection === "connecting" || connection === "lost") void this.#readWithoutStream();
        this.#changed();
      },
    );
  }

  /** Undefined until the first answer. */
  get figures(): Figures | undefined {
    const { hour } = this.#longer;
    if (this.#newest === undefined || hour === undefined) return undefined;
    const { overview, minute } = this.#newest;
    const history = (this.range === "minute" ? undefined : this.#longer[this.range]) ?? minute;
    return { overview, history, hour, nowMs: Date.now() + this.#aheadMs };
  }

  choose(range: Range): void {
    this.range = range;
    if (range !== "minute" && this.#longer[range] === undefined) void this.#read(range);
    this.#changed();
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

  #longRanges(): LongRange[] {
    return this.range === "day" || this.#longer.day !== undefined ? ["hour", "day"] : ["hour"];
  }

  #take(figures: LiveFigures): void {
    const { overview, minute } = figures;
    this.#newest = figures;
    this.#aheadMs = overview.nowMs - Date.now();
    if (this.figures !== undefined) this.trouble = undefined;
    for (const range of this.#longRanges()) if (!isNewest(this.#longer[range], endOf(minute))) void this.#read(range);
    this.#changed();
  }

  async #readWithoutStream(): Promise<void> {
    try {
      const [overview, minute] = await Promise.all([readOverview(), readHistory("minute")]);
      this.#take({ overview, minute });
    } catch (error) {
      this.trouble = (error as Error).message;
      this.#changed();
    }
  }

  async #read(range: LongRange): Promise<void> {
    if (this.#reading.has(range)) return;
    this.#reading.add(range);
    try {
      this.#longer[range] = await readHistory(range);
      this.trouble = undefined;
    } catch (error) {
      // Else the page shows what it has, and reads again with the next figures.
      if (this.figures === undefined) this.trouble = (error as Error).message;
    } finally {
      this.#reading.delete(range);
      this.#changed();
    }
  }
}

const endOf = ({ startMs, points, stepMs }: History): number => startMs + points * stepMs;

/** Whether a history has each step that has ended by a moment of the server. Its clock may have stepped back. */
function isNewest(history: History | undefined, nowMs: number): boolean {
  if (history === undefined) return false;
  const olderMs = nowMs - endOf(history);
  return olderMs >= 0 && olderMs < history.stepMs;
}
