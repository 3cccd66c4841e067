import type { LiveFigures } from "../contract.js";
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

/** The open streams of one dashboard. All of them get the same figures. */
export class Live {
  readonly #streams = new Set<Stream>();
  readonly #clock: () => number;

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
  open(first: LiveFigures): Reply {
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
      sink.write(`retry: 2000\n\n${eventOf(first)}`);
    };
    return { status: 200, headers: [...headersFor("text/event-stream; charset=utf-8"), ["X-Accel-Buffering", "no"]], body };
  }

  send(figures: LiveFigures): void {
    const nowMs = this.#clock();
    const text = eventOf(figures);
    for (const stream of this.#streams) {
      if (!stream.sink.isStale && nowMs < stream.endsAtMs) {
        stream.sink.write(text);
        continue;
      }
      // A client that does not read may keep its end of the stream open, but no place.
      this.#streams.delete(stream);
      stream.sink.end();
    }
  }

  close(): void {
    for (const { sink } of this.#streams) sink.end();
  }
}

function eventOf(figures: LiveFigures): string {
  return `event: figures\ndata: ${JSON.stringify(figures)}\n\n`;
}
