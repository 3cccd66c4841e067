import type { EndedSecond } from "../collect/collector.js";
import type { Overview, Tick } from "../contract.js";
import { headersFor } from "../safety/headers.js";
import { Refusal } from "./json.js";
import type { Reply, Sink } from "./view.js";

const maxStreams = 32;

/** A stream ends after this time. The browser connects again, and `authorize` is asked again. */
const longestMs = 10 * 60_000;

interface Stream {
  readonly sink: Sink;
  readonly endsAtMs: number;
}

/** The open streams of one dashboard. All of them get the same ticks. */
export class Live {
  readonly #streams = new Set<Stream>();
  readonly #clock: () => number;
  /** Each member as JSON, as the streams know it. */
  #known = new Map<string, string>();

  constructor(clock: () => number) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#streams.size;
  }

  /**
   * Opens a stream.
   * @throws Refusal if too many are open.
   */
  open(): Reply {
    if (this.#streams.size >= maxStreams) {
      throw new Refusal(429, "too-many-streams", `${maxStreams} pages are open already. Close some of them.`, [["Retry-After", "10"]]);
    }
    const body = (sink: Sink): void => {
      // Others have opened since the answer was made.
      if (this.#streams.size >= maxStreams) {
        sink.end();
        return;
      }
      const stream = { sink, endsAtMs: this.#clock() + longestMs };
      this.#streams.add(stream);
      sink.onClose(() => this.#streams.delete(stream));
      // The page knows no tick yet, so the next one tells every member.
      this.#known.clear();
      sink.write("retry: 2000\n\n");
    };
    return { status: 200, headers: [...headersFor("text/event-stream; charset=utf-8"), ["X-Accel-Buffering", "no"]], body };
  }

  tick(ended: readonly EndedSecond[], overview: Overview): void {
    const nowMs = this.#clock();
    for (const stream of this.#streams) {
      if (!stream.sink.isStale && nowMs < stream.endsAtMs) continue;
      // A client that does not read may keep its end of the stream open, but no place.
      this.#streams.delete(stream);
      stream.sink.end();
    }
    if (this.#streams.size === 0 || ended.length === 0) return;
    let text = "";
    ended.forEach(({ second, counts }, i) => {
      const changed = i === ended.length - 1 ? this.#changed(overview) : {};
      const tick: Tick = { secondMs: second * 1000, counts, changed };
      text += `id: ${second}\nevent: tick\ndata: ${JSON.stringify(tick)}\n\n`;
    });
    for (const { sink } of this.#streams) sink.write(text);
  }

  close(): void {
    for (const { sink } of this.#streams) sink.end();
  }

  #changed({ title: _title, nowMs: _nowMs, ...members }: Overview): Tick["changed"] {
    const changed = Object.entries(members).filter(([member, value]) => {
      const [known, json] = [this.#known.get(member), JSON.stringify(value)];
      this.#known.set(member, json);
      return json !== known;
    });
    return Object.fromEntries(changed);
  }
}
