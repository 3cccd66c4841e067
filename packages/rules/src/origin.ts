import { FloodgateError } from "@floodgate/core";
import { reasonOf } from "./rules-error.js";

/** A version of the rules, as its origin stores it. */
export interface RulesText {
  readonly text: string;
  /** The origin's own name for the version. Default: a hash of the text. */
  readonly version?: string | undefined;
}

/** A place that stores rules. Implement it to load them from S3 or etcd, for example. */
export interface RulesOrigin {
  /** The name in error messages and events: a file, a key. */
  readonly source: string;
  /**
   * Returns the current text. It must settle, because reads never overlap. If it rejects, the error is reported once for each message,
   * and the next poll reads again.
   */
  read(): Promise<RulesText>;
  /**
   * Returns a value that changes whenever the text does and is cheaper to get: a date, an ETag. Without this method, or if it returns
   * undefined, each poll reads the text.
   */
  revision?(): Promise<string | undefined>;
  /**
   * Calls `changed` when there may be a new text. Returns a function that stops watching, or a promise of it, which must settle because
   * `close` waits for it. If it throws or rejects, that is reported as a refusal, and polling continues.
   */
  watch?(changed: () => void): Stop | Promise<Stop>;
}

type Stop = () => void | Promise<void>;

/** Receives what an `OriginWatcher` reads. */
export interface OriginListener {
  /** The origin was asked, and has nothing new. */
  unchanged(): void;
  /** Called with each text. The next read waits for the promise. */
  receive(read: RulesText): Promise<void>;
  /** Called with the error of each read that fails, and of a watch that fails. */
  refuse(error: unknown): void;
}

/** The first version, with its revision or an older one. */
export interface FirstText extends RulesText {
  readonly revision: string | undefined;
}

/** @throws FloodgateError `FLOODGATE_RULES_UNAVAILABLE` if the text cannot be read. */
export function readFirst(origin: RulesOrigin): Promise<FirstText> {
  return readIfNew(origin, undefined) as Promise<FirstText>;
}

/** Reads an origin's text when the origin reports a change, and when a poll finds another revision. */
export class OriginWatcher {
  readonly #origin: RulesOrigin;
  readonly #listener: OriginListener;
  readonly #timer: NodeJS.Timeout;
  readonly #watching: Promise<Stop | undefined>;
  #revision: string | undefined;
  #reading: Promise<void> | undefined;
  #changed = false;
  #closed: Promise<void> | undefined;

  constructor(origin: RulesOrigin, pollMs: number, { revision }: FirstText, listener: OriginListener) {
    this.#origin = origin;
    this.#listener = listener;
    this.#revision = revision;
    this.#watching = this.#watch();
    this.#timer = setInterval(() => void this.#poll(), Math.min(pollMs, maxTimerMs));
    // In jsdom it is a number.
    this.#timer.unref?.();
  }

  close(): Promise<void> {
    this.#closed ??= (async () => {
      clearInterval(this.#timer);
      const stop = await this.#watching;
      // An origin written in JavaScript may return no function.
      if (typeof stop === "function") await stop();
    })();
    return this.#closed;
  }

  get isClosed(): boolean {
    return this.#closed !== undefined;
  }

  /** Makes the next poll read the text, even if the revision stays the same. */
  forgetRevision(): void {
    this.#revision = undefined;
  }

  async #watch(): Promise<Stop | undefined> {
    try {
      return await this.#origin.watch?.(() => {
        void this.read();
      });
    } catch (error) {
      if (this.#closed === undefined) this.#listener.refuse(unavailable(this.#origin, "changes of the rules cannot be watched", error));
      return undefined;
    }
  }

  /** Reads the text, whatever its revision. */
  async read(): Promise<void> {
    this.#changed = true;
    await this.#poll();
    // If a read was under way, it does this one too.
    await this.#reading;
  }

  /** A reported change during a read leads to another read. A poll during a read does nothing. */
  async #poll(): Promise<void> {
    if (this.#reading !== undefined) return;
    this.#reading = this.#readUntilUnchanged();
    await this.#reading;
    this.#reading = undefined;
  }

  async #readUntilUnchanged(): Promise<void> {
    do {
      // After a reported change the text is read whatever its revision.
      const known = this.#changed ? undefined : this.#revision;
      this.#changed = false;
      await this.#readOnce(known);
    } while (this.#changed);
  }

  async #readOnce(known: string | undefined): Promise<void> {
    if (this.#closed !== undefined) return;
    let read: FirstText | undefined;
    try {
      read = await readIfNew(this.#origin, known);
    } catch (error) {
      this.#revision = undefined;
      if (this.#closed === undefined) this.#listener.refuse(error);
      return;
    }
    if (this.#closed !== undefined) return;
    if (read === undefined) return this.#listener.unchanged();
    this.#revision = read.revision;
    await this.#listener.receive(read);
  }
}

/** The longest delay of a JavaScript timer. */
const maxTimerMs = 2 ** 31 - 1;

/** Reads the text unless its revision is `known`. The revision is read first, so a change in between leads to another read. */
async function readIfNew(origin: RulesOrigin, known: string | undefined): Promise<FirstText | undefined> {
  try {
    const revision = await origin.revision?.();
    if (revision !== undefined && revision === known) return undefined;
    const read = await origin.read();
    if (typeof read?.text !== "string") throw new TypeError("`read` returned no text");
    return { ...read, revision };
  } catch (error) {
    throw unavailable(origin, "the rules cannot be read", error);
  }
}

function unavailable({ source }: RulesOrigin, what: string, error: unknown): FloodgateError {
  if (error instanceof FloodgateError) return error;
  return new FloodgateError("FLOODGATE_RULES_UNAVAILABLE", `${source}: ${what}: ${reasonOf(error)}.`, { cause: error });
}
