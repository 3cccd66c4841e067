/** Lets through the first events of each second, and counts the others. */
export class Capped {
  readonly #perSecond: number;
  readonly #tellOmitted: (count: number) => void;
  #left: number;
  #omitted = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param tellOmitted called at the end of a second in which events were left out. */
  constructor(perSecond: number, tellOmitted: (count: number) => void) {
    this.#perSecond = perSecond;
    this.#left = perSecond;
    this.#tellOmitted = tellOmitted;
  }

  /** Whether this event may be logged. */
  admits(): boolean {
    // Only a second with events has a timer.
    this.#timer ??= setTimeout(() => this.flush(), 1000).unref();
    if (this.#left === 0) {
      this.#omitted++;
      return false;
    }
    this.#left--;
    return true;
  }

  /** Ends the second: tells how many events were left out, and starts anew. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#left = this.#perSecond;
    const omitted = this.#omitted;
    this.#omitted = 0;
    if (omitted > 0) this.#tellOmitted(omitted);
  }
}
