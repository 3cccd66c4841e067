import type { LiveFigures } from "../contract.js";
import { headersFor } from "../safety/headers.js";
import { Refusal } from "./json.js";
import type { Reply, View } from "./view.js";

const maxStreams = 32;

/** A stream ends after this time. The browser connects again, and `authorize` is asked again. */
const longestMs = 10 * 60_000;

/** A client that reads too slowly is cut off at this many bytes. Its browser connects again. */
const maxUnread = 1_000_000;

interface Stream {
  readonly view: View;
  readonly controller: ReadableStreamDefaultController<Uint8Array>;
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
  open(view: View, first: LiveFigures): Reply {
    if (this.#streams.size >= maxStreams) {
      throw new Refusal(429, "too-many-streams", `${maxStreams} pages are open already. Close some of them.`, [["Retry-After", "10"]]);
    }
    let stream: Stream;
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          stream = { view, controller, endsAtMs: this.#clock() + longestMs };
          this.#streams.add(stream);
          controller.enqueue(Buffer.from(`retry: 2000\n\n${eventOf(first)}`));
        },
        cancel: () => void this.#streams.delete(stream),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: maxUnread }),
    );
    return { status: 200, headers: [...headersFor("text/event-stream; charset=utf-8"), ["X-Accel-Buffering", "no"]], body };
  }

  send(figures: LiveFigures): void {
    const nowMs = this.#clock();
    const event = Buffer.from(eventOf(figures));
    for (const stream of this.#streams) {
      if (nowMs >= stream.endsAtMs || isSlow(stream) || stream.view.isClosing()) this.#end(stream);
      else stream.controller.enqueue(event);
    }
  }

  close(): void {
    for (const stream of this.#streams) this.#end(stream);
  }

  /** A client that does not read may keep its end of the stream open, but no place. */
  #end(stream: Stream): void {
    this.#streams.delete(stream);
    // What such a client has not read would stay in memory until it leaves.
    if (isSlow(stream)) stream.controller.error(new Error("The client reads too slowly."));
    else stream.controller.close();
  }
}

const isSlow = ({ controller }: Stream): boolean => (controller.desiredSize ?? 0) < 0;

function eventOf(figures: LiveFigures): string {
  return `event: figures\ndata: ${JSON.stringify(figures)}\n\n`;
}
