import type { Tick } from "../contract.js";
import { liveAddress } from "./api.js";

/** `paused`: the tab is hidden, so nothing is asked for. */
export type Connection = "connecting" | "live" | "lost" | "paused";

export interface LiveListener {
  onTick(tick: Tick): void;
  /** Ticks may be missing since the last one. */
  onGap(): void;
  onConnection(connection: Connection): void;
}

/** Ticks come once a second. A stream that is silent for so long is dead, whatever TCP says. */
const silenceMs = 6000;
const firstRetryMs = 500;
const longestRetryMs = 15_000;

/** The stream of ticks. It connects again when it is lost, after a sleep, and when the tab is looked at again. */
export class Live {
  readonly #listener: LiveListener;
  #source: EventSource | undefined;
  #watch: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;

  constructor(listener: LiveListener) {
    this.#listener = listener;
  }

  start(): void {
    document.addEventListener("visibilitychange", () => this.#look());
    // Back from the browser's page cache.
    addEventListener("pageshow", (event) => event.persisted && this.#look());
    addEventListener("online", () => this.#look());
    this.#look();
  }

  #look(): void {
    this.#close();
    this.#failures = 0;
    if (document.hidden) this.#listener.onConnection("paused");
    else this.#open();
  }

  #open(): void {
    this.#close();
    if (this.#failures === 0) this.#listener.onConnection("connecting");
    const source = new EventSource(liveAddress());
    this.#source = source;
    this.#expectSign();
    // An event may be under way while its source is closed.
    const isCurrent = (): boolean => source === this.#source;
    source.addEventListener("open", () => {
      if (!isCurrent()) return;
      this.#failures = 0;
      this.#expectSign();
      this.#listener.onConnection("live");
      this.#listener.onGap();
    });
    source.addEventListener("tick", (event) => {
      if (!isCurrent()) return;
      this.#expectSign();
      this.#listener.onTick(JSON.parse((event as MessageEvent<string>).data));
    });
    // The browser's own attempts give up for good on an error status, so the attempts are ours.
    source.addEventListener("error", () => {
      if (isCurrent()) this.#retry();
    });
  }

  /** The server ends each stream after a while, so only a second failure is worth a word. */
  #retry(): void {
    this.#close();
    this.#failures++;
    if (this.#failures > 1) this.#listener.onConnection("lost");
    this.#watch = setTimeout(() => this.#open(), Math.min(longestRetryMs, firstRetryMs * 2 ** (this.#failures - 1)));
  }

  #expectSign(): void {
    clearTimeout(this.#watch);
    this.#watch = setTimeout(() => this.#retry(), silenceMs);
  }

  #close(): void {
    clearTimeout(this.#watch);
    this.#source?.close();
    this.#source = undefined;
  }
}
