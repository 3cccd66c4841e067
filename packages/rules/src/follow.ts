import { FloodgateError } from "@floodgate/core";
import { reasonOf } from "./reason.js";

/** A version of the rules as its origin holds it. */
export interface RulesText {
  readonly text: string;
  /** The origin's own name for it; default: a hash of the text. */
  readonly version?: string | undefined;
}

/** Where rules come from: all that a source of one's own has to say. */
export interface RulesOrigin {
  /** Names the origin in problems and events: a file, a key. */
  readonly source: string;
  /**
   * Answers the text that there is now. It must end: nothing else is read meanwhile. What it rejects with is told, once where its
   * message stays the same, and the read is tried again at the next poll.
   */
  read(): Promise<RulesText>;
  /**
   * Answers something that differs whenever the text does, and costs less than to read it: a date, an ETag. Where it answers
   * undefined, or is not there, each poll reads.
   */
  revision?(): Promise<string | undefined>;
  /**
   * Calls `changed` when there may be a new text, where the origin can tell. Answers how to stop, or a promise of it, which must
   * settle: `close` waits for it. What it throws or rejects with is told as a refusal, and the polls go on without it.
   */
  watch?(changed: () => void): Stop | Promise<Stop>;
}

type Stop = () => void | Promise<void>;

/** Who is told what was found. */
export interface Listener {
  /** The next read waits for it. */
  take(read: RulesText): Promise<void>;
  /** With what a read has failed: at each poll, as long as it does; or the watch, once. */
  refuse(error: unknown): void;
}

/** A first version, and the revision that it had at the least. */
export interface FirstText extends RulesText {
  readonly revision: string | undefined;
}

/** @throws FloodgateError `FLOODGATE_RULES_UNAVAILABLE` where there is none. */
export function firstOf(origin: RulesOrigin): Promise<FirstText> {
  return readNew(origin, undefined) as Promise<FirstText>;
}

/** Follows an origin: reads one text after the other, when it is told of a change and when a poll finds another revision. */
export class Follower {
  readonly #origin: RulesOrigin;
  readonly #listener: Listener;
  readonly #timer: NodeJS.Timeout;
  readonly #watching: Promise<Stop | undefined>;
  #revision: string | undefined;
  #reading = false;
  #changed = false;
  #closed: Promise<void> | undefined;

  constructor(origin: RulesOrigin, pollMs: number, { revision }: FirstText, listener: Listener) {
    this.#origin = origin;
    this.#listener = listener;
    this.#revision = revision;
    this.#watching = this.#watch();
    this.#timer = setInterval(() => void this.#follow(), Math.min(pollMs, longestTimerMs)).unref();
  }

  close(): Promise<void> {
    this.#closed ??= (async () => {
      clearInterval(this.#timer);
      const stop = await this.#watching;
      // An origin in JavaScript may have nothing to stop.
      if (typeof stop === "function") await stop();
    })();
    return this.#closed;
  }

  get isClosed(): boolean {
    return this.#closed !== undefined;
  }

  /** Has the next poll read, whatever the revision. */
  forget(): void {
    this.#revision = undefined;
  }

  async #watch(): Promise<Stop | undefined> {
    try {
      return await this.#origin.watch?.(() => {
        this.#changed = true;
        void this.#follow();
      });
    } catch (error) {
      if (this.#closed === undefined) this.#listener.refuse(unavailable(this.#origin, "changes of the rules cannot be watched", error));
      return undefined;
    }
  }

  /** A change during a read leads to one more; a poll does not. */
  async #follow(): Promise<void> {
    if (this.#reading) return;
    this.#reading = true;
    do {
      // What is said to have changed is read, whatever its revision.
      const known = this.#changed ? undefined : this.#revision;
      this.#changed = false;
      await this.#look(known);
    } while (this.#changed);
    this.#reading = false;
  }

  async #look(known: string | undefined): Promise<void> {
    if (this.#closed !== undefined) return;
    let read: FirstText | undefined;
    try {
      read = await readNew(this.#origin, known);
    } catch (error) {
      this.#revision = undefined;
      if (this.#closed === undefined) this.#listener.refuse(error);
      return;
    }
    if (this.#closed !== undefined || read === undefined) return;
    this.#revision = read.revision;
    await this.#listener.take(read);
  }
}

/** What a timer of JavaScript's holds. */
const longestTimerMs = 2 ** 31 - 1;

/** The text, unless its revision is the one that is known. That is asked for first: what changes in between is read once more. */
async function readNew(origin: RulesOrigin, known: string | undefined): Promise<FirstText | undefined> {
  try {
    const revision = await origin.revision?.();
    if (revision !== undefined && revision === known) return undefined;
    const { text, version } = await origin.read();
    if (typeof text !== "string") throw new TypeError("what was read has no `text`");
    return { text, version, revision };
  } catch (error) {
    throw unavailable(origin, "the rules cannot be read", error);
  }
}

/** What an origin has failed with, as it is told. */
function unavailable({ source }: RulesOrigin, what: string, error: unknown): FloodgateError {
  if (error instanceof FloodgateError) return error;
  return new FloodgateError("FLOODGATE_RULES_UNAVAILABLE", `${source}: ${what}: ${reasonOf(error)}.`, { cause: error });
}
