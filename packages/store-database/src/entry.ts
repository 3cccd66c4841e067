import {
  asCharge,
  type Blocked,
  type BlockKind,
  beganByCharge,
  beganState,
  blockCells,
  blockedDecision,
  blockIn,
  type Cells,
  type Charge,
  type Decision,
  inState,
  type KeyBlock,
  keyBlockIn,
  type Limit,
  liftBanIn,
  type ReceiptMark,
  renewIn,
  settleIn,
} from "@floodgate/core/store";

/** What one key has under a limit's kind of state. */
interface State {
  /** No other state has it: a random number below 2^53. 0 before the first charge. */
  number: number;
  /** When it is the same as no state, by the store's clock. */
  endsMs: number;
  cells: Cells;
}

/** The first part of each value. Values of other formats count as no state. */
const format = "1";
/** The kind under which the block and the ban of a key are stored. */
const blocksKind = "blocks";
/** The kind of the mark that a receipt was redeemed, or of the time and the state of its slots since they were renewed. */
const markKind = "receipt";
const redeemed = 1;
/** Rows live this much longer, so that a clock that steps back by less loses no state. */
const keptMs = 60_000;
/** Six digits in base 32. */
const sixDigits = 2 ** 30;
/** From this cell on, each is written as its difference from the one two before it: the times of a log are close together. */
const firstDelta = 5;

/**
 * All that is known of a limit's name and key: states by their kind, and the block. As text:
 *
 *     1|<kind>|<number>.<end>.<cell>.<cell>...|<kind>|...
 *
 * Numbers are in base 32. From the sixth cell on, they are differences, unless they begin with "=".
 */
export class Entry {
  readonly #states: Map<string, State>;
  /** Whether it was changed since it was read or copied. */
  changed = false;

  private constructor(states: Map<string, State>) {
    this.#states = states;
  }

  static read(text: string | undefined): Entry {
    const states = new Map<string, State>();
    const [version, ...parts] = text?.split("|") ?? [];
    if (version === format) {
      for (let i = 0; i + 1 < parts.length; i += 2) {
        const state = stateOf(parts[i + 1] as string);
        if (state !== undefined) states.set(parts[i] as string, state);
      }
    }
    return new Entry(states);
  }

  copy(): Entry {
    const states = new Map<string, State>();
    for (const [kind, { number, endsMs, cells }] of this.#states) states.set(kind, { number, endsMs, cells: cells.slice() });
    return new Entry(states);
  }

  /** The number of cells, for the bound of a cache. */
  get size(): number {
    let size = 20;
    for (const { cells } of this.#states.values()) size += cells.length + 10;
    return size;
  }

  /** Its text, and how long it must be kept; an empty text if nothing is left to remember. */
  write(nowMs: number): { value: string; lifeMs: number } {
    let value = format;
    let lastMs = nowMs;
    for (const [kind, state] of this.#states) {
      if (state.endsMs + keptMs <= nowMs || state.cells.every((cell) => cell === 0)) continue;
      value += `|${kind}|${textOf(state)}`;
      lastMs = Math.max(lastMs, state.endsMs);
    }
    return { value, lifeMs: lastMs - nowMs + keptMs };
  }

  decide(limit: Limit, cost: number, nowMs: number, commit: boolean): Decision {
    const blocked = this.#blockAt(nowMs);
    return blocked === undefined
      ? this.#decideUnblocked(limit, cost, nowMs, commit)
      : blockedDecision(this.#decideUnblocked(limit, cost, nowMs, false), blocked, nowMs);
  }

  #decideUnblocked(limit: Limit, cost: number, nowMs: number, commit: boolean): Decision {
    const { algorithm, policy } = limit;
    const state = this.stateFor(limit);
    const made = algorithm.decide(limit, state.cells, 0, nowMs, cost, commit);
    if (commit && (made.allowed || algorithm.countsRejected?.(policy) === true)) {
      const began = state.number === 0 || beganState(limit, state.cells, 0, nowMs, made);
      this.#keep(limit, state, nowMs, made, began);
    }
    return inState(made, state.number);
  }

  settle(limit: Limit, charge: Charge, cost: number, nowMs: number): number {
    const state = this.stateFor(limit);
    const units = settleIn(limit, state.cells, 0, nowMs, charge, cost, numberOf(state));
    // Held units that cost what was held change the state, but not what is used.
    if (units === 0 && charge.heldUntilMs === undefined) return 0;
    const look = limit.algorithm.decide(limit, state.cells, 0, nowMs, 1, false);
    const began = state.number === 0 || beganByCharge(limit, state.cells, 0, nowMs, charge, cost, units);
    this.#keep(limit, state, nowMs, look, began);
    // A state without usage is no state: a later charge is not to have its number.
    if (state.cells.every((cell) => cell === 0)) this.#states.delete(limit.policy.stateKind);
    return units;
  }

  renew(limit: Limit, charge: Charge, nowMs: number): Decision {
    const state = this.stateFor(limit);
    const made = renewIn(limit, state.cells, 0, nowMs, charge, numberOf(state));
    const began = state.number === 0 || beganState(limit, state.cells, 0, nowMs, made);
    if (made.allowed) this.#keep(limit, state, nowMs, made, began);
    return inState(made, state.number);
  }

  /** The state of a limit, with room for one more request. If the key has no state yet, it is a new one, which `#keep` adds. */
  stateFor({ algorithm, policy }: Limit): State {
    const state = this.#states.get(policy.stateKind) ?? { number: 0, endsMs: 0, cells: new Float64Array(3) };
    const size = algorithm.size(policy, state.cells, 0);
    if (size <= state.cells.length) return state;
    const cells = new Float64Array(algorithm.grows ? 2 * size : size);
    cells.set(state.cells);
    state.cells = cells;
    return state;
  }

  /** Notes that a state was charged or settled. */
  #keep({ algorithm, policy }: Limit, state: State, nowMs: number, { resetAfterMs }: Decision, began: boolean): void {
    if (began) state.number = 1 + Math.floor(Math.random() * (Number.MAX_SAFE_INTEGER - 1));
    // Other plans may count it for longer than this one.
    const endsMs = Math.max(nowMs + resetAfterMs, algorithm.endOf?.(policy, state.cells, 0, nowMs) ?? 0);
    state.endsMs = Math.min(began ? endsMs : Math.max(state.endsMs, endsMs), Number.MAX_SAFE_INTEGER);
    this.#states.set(policy.stateKind, state);
    this.changed = true;
  }

  /** The cells of the block and the ban; undefined if there never was one. */
  get blocks(): Cells | undefined {
    return this.#states.get(blocksKind)?.cells;
  }

  #blockAt(nowMs: number): KeyBlock | undefined {
    const cells = this.blocks;
    return cells === undefined ? undefined : keyBlockIn(cells, 0, nowMs);
  }

  block(nowMs: number, forMs: number, kind: BlockKind): Blocked {
    const cells = this.blocks ?? new Float64Array(blockCells);
    const blocked = blockIn(cells, 0, nowMs, forMs, kind);
    if (blocked.begun) this.#keepBlocks(cells, nowMs);
    return blocked;
  }

  unblock(): void {
    if (this.#states.delete(blocksKind)) this.changed = true;
  }

  /** Deletes the state of a limit, and lifts the ban. */
  reset({ policy }: Limit, nowMs: number): void {
    if (this.#states.delete(policy.stateKind)) this.changed = true;
    const cells = this.blocks;
    if (cells === undefined) return;
    liftBanIn(cells, 0);
    this.#keepBlocks(cells, nowMs);
  }

  #keepBlocks(cells: Cells, nowMs: number): void {
    this.#states.set(blocksKind, { number: 0, endsMs: keyBlockIn(cells, 0, nowMs)?.untilMs ?? nowMs, cells });
    this.changed = true;
  }

  /** A charge as the mark of its receipt knows it, after renewals. Undefined if the receipt was redeemed or has expired. */
  marked(charge: Charge, nowMs: number): Charge | undefined {
    const [atMs = 0, state] = this.#states.get(markKind)?.cells ?? [];
    if (this.#states.has(markKind)) return atMs === redeemed ? undefined : { ...charge, atMs, state };
    return nowMs < (charge.receipt as ReceiptMark).untilMs ? charge : undefined;
  }

  /** Marks a receipt as redeemed, or as renewed. */
  mark({ receipt }: Charge, nowMs: number, renewed?: Decision): void {
    const endsMs = Math.max((receipt as ReceiptMark).untilMs, nowMs + (renewed?.resetAfterMs ?? 0));
    const cells = renewed === undefined ? [redeemed] : [renewed.atMs, asCharge(renewed).state as number];
    this.#states.set(markKind, { number: 0, endsMs, cells: Float64Array.from(cells) });
    this.changed = true;
  }
}

/** As core takes it: undefined before the first charge. */
function numberOf({ number }: State): number | undefined {
  return number === 0 ? undefined : number;
}

function textOf({ number, endsMs, cells }: State): string {
  let length = cells.length;
  while (cells[length - 1] === 0) length--;
  let text = `${base32(number)}.${base32(endsMs)}`;
  for (let i = 0; i < length; i++) {
    const cell = cells[i] as number;
    const delta = i < firstDelta ? cell : cell - (cells[i - 2] as number);
    text += Number.isSafeInteger(delta) ? `.${base32(delta)}` : `.=${cell.toString(32)}`;
  }
  return text;
}

/** A whole number in base 32. In two parts if it is large: `toString` takes four times as long for a number that is no 32-bit integer. */
function base32(number: number): string {
  if (number < sixDigits) return number.toString(32);
  const high = Math.floor(number / sixDigits);
  return high.toString(32) + (number - high * sixDigits).toString(32).padStart(6, "0");
}

/** Undefined if it is no text of a state. */
function stateOf(text: string): State | undefined {
  const [number = "", ends = "", ...words] = text.split(".");
  const cells = new Float64Array(Math.max(words.length, blockCells));
  for (const [i, word] of words.entries()) {
    const isWhole = i < firstDelta || word.startsWith("=");
    cells[i] = Number.parseInt(word.replace("=", ""), 32) + (isWhole ? 0 : (cells[i - 2] as number));
  }
  const state = { number: Number.parseInt(number, 32), endsMs: Number.parseInt(ends, 32), cells };
  return [state.number, state.endsMs, ...cells].every(Number.isSafeInteger) ? state : undefined;
}
