import { randomUUID } from "node:crypto";
import {
  beganByCharge,
  beganState,
  blockCells,
  blockedDecision,
  blockedMs,
  blockIn,
  decideAll,
  inState,
  inspectIn,
  liftBanIn,
  renewIn,
  settleIn,
  wholeMsClock,
} from "@floodgate/core/store";
import { openDatabase } from "./database.mjs";

const schema = `
  CREATE TABLE IF NOT EXISTS identity (one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS states (
    number INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again, also after a row is deleted
    id TEXT NOT NULL UNIQUE,
    cells BLOB NOT NULL,
    endsMs INTEGER NOT NULL
  );
  CREATE INDEX IF NOT EXISTS statesByEnd ON states (endsMs);
  CREATE TABLE IF NOT EXISTS blocks (id TEXT PRIMARY KEY, cells BLOB NOT NULL, endsMs INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS receipts (id TEXT PRIMARY KEY, untilMs INTEGER NOT NULL) WITHOUT ROWID;
`;

/** The objects that stand for the data of a file: stores of one file are one store. */
const scopes = new Map();

/** Old rows are deleted after this many writes. A clock that was wrong for less than an hour loses nothing. */
const writesBetweenSweeps = 1000;
const keptMs = 3_600_000;

/** The number of a state that is not in the file. */
const noState = 0;

/** A store in a SQLite file, for the processes of one machine. Each decision is one transaction. */
export function sqliteStore(path, { clock, busyMs = 1000 } = {}) {
  const now = wholeMsClock("sqliteStore", clock);
  const database = openDatabase(path);
  database.exec(`PRAGMA busy_timeout = ${Number(busyMs)}`);

  /**
   * One atomic step: nobody else writes between its reading and its writing. It reads the time inside, so that the steps of several
   * processes are in the order of their times.
   */
  function step(work) {
    database.exec("BEGIN IMMEDIATE");
    try {
      const result = work(now());
      database.exec("COMMIT");
      return result;
    } catch (error) {
      database.exec("ROLLBACK");
      throw error;
    }
  }

  const identity = step(() => {
    database.exec(schema);
    database.prepare("INSERT OR IGNORE INTO identity VALUES (1, ?)").run(randomUUID());
    return database.prepare("SELECT id FROM identity").get().id;
  });
  if (!scopes.has(identity)) scopes.set(identity, {});

  const findState = database.prepare("SELECT number, cells FROM states WHERE id = ?");
  const insertState = database.prepare("INSERT INTO states (id, cells, endsMs) VALUES (?, ?, ?)");
  const updateState = database.prepare("UPDATE states SET cells = ?, endsMs = max(endsMs, ?) WHERE id = ?");
  const deleteState = database.prepare("DELETE FROM states WHERE id = ?");
  const findBlock = database.prepare("SELECT cells FROM blocks WHERE id = ?");
  const replaceBlock = database.prepare("INSERT OR REPLACE INTO blocks (id, cells, endsMs) VALUES (?, ?, ?)");
  const deleteBlock = database.prepare("DELETE FROM blocks WHERE id = ?");
  const redeem = database.prepare("INSERT OR IGNORE INTO receipts (id, untilMs) VALUES (?, ?)");
  const sweepStates = database.prepare("DELETE FROM states WHERE endsMs < ?");
  const sweepBlocks = database.prepare("DELETE FROM blocks WHERE endsMs < ?");
  const sweepReceipts = database.prepare("DELETE FROM receipts WHERE untilMs < ?");
  let writes = 0;

  // JSON escapes the characters that SQLite's texts cannot hold: NUL and lone surrogates.
  const stateId = (limit, key) => JSON.stringify([limit.name, limit.policy.stateKind, key]);
  const blockId = (name, key) => JSON.stringify([name, key]);

  /** The state of a key, in an array that is large enough for one more request. */
  function stateOf(limit, id) {
    const row = findState.get(id);
    const stored = row === undefined ? new Float64Array(3) : cellsOf(row.cells);
    const size = limit.algorithm.size(limit.policy, stored, 0);
    const cells = size <= stored.length ? stored : new Float64Array(size);
    if (cells !== stored) cells.set(stored);
    return { number: row === undefined ? noState : Number(row.number), cells };
  }

  /** Writes a state, and returns its number: the one it has, or a new one. */
  function keep(limit, id, cells, nowMs, number) {
    if (number === noState) deleteState.run(id);
    if (cells.every((cell) => cell === 0)) {
      if (number !== noState) deleteState.run(id);
      return noState;
    }
    const { resetAfterMs } = limit.algorithm.decide(limit, cells, 0, nowMs, 1, false);
    const endsMs = Math.min(nowMs + resetAfterMs, Number.MAX_SAFE_INTEGER);
    sweep(nowMs);
    if (number !== noState) {
      updateState.run(bytesOf(cells), endsMs, id);
      return number;
    }
    insertState.run(id, bytesOf(cells), endsMs);
    return Number(findState.get(id).number);
  }

  function sweep(nowMs) {
    if (++writes % writesBetweenSweeps !== 0) return;
    sweepStates.run(nowMs - keptMs);
    sweepBlocks.run(nowMs - keptMs);
    sweepReceipts.run(nowMs - keptMs);
  }

  function blockOf(name, key) {
    const row = findBlock.get(blockId(name, key));
    return row === undefined ? undefined : cellsOf(row.cells);
  }

  function keepBlock(name, key, cells, nowMs) {
    replaceBlock.run(blockId(name, key), bytesOf(cells), nowMs + blockedMs(cells, 0, nowMs));
  }

  function decide(limit, key, cost, nowMs, commit) {
    const block = blockOf(limit.name, key);
    const leftMs = block === undefined ? 0 : blockedMs(block, 0, nowMs);
    return leftMs > 0
      ? blockedDecision(decideUnblocked(limit, key, cost, nowMs, false), leftMs)
      : decideUnblocked(limit, key, cost, nowMs, commit);
  }

  function decideUnblocked(limit, key, cost, nowMs, commit, renewed) {
    const id = stateId(limit, key);
    const { number, cells } = stateOf(limit, id);
    const decision =
      renewed === undefined
        ? limit.algorithm.decide(limit, cells, 0, nowMs, cost, commit)
        : renewIn(limit, cells, 0, nowMs, renewed, number === noState ? undefined : number);
    const changed = commit && (decision.allowed || limit.algorithm.countsRejected?.(limit.policy) === true);
    if (!changed) return inState(decision, number);
    const began = beganState(limit, cells, 0, nowMs, decision);
    return inState(decision, keep(limit, id, cells, nowMs, began ? noState : number));
  }

  return {
    mode: "sync",
    scope: scopes.get(identity),
    dataId: `sqlite:${identity}`,
    consume: (limit, key, cost) => step((nowMs) => decide(limit, key, cost, nowMs, true)),
    consumeAll: (checks) => step((nowMs) => decideAll(checks, nowMs, decide)),
    peek: (limit, key) => step((nowMs) => decide(limit, key, 1, nowMs, false)),
    settle: (limit, key, charge, cost) =>
      step((nowMs) => {
        const { receipt } = charge;
        if (receipt !== undefined && redeem.run(receipt.id, receipt.untilMs) === 0) return 0;
        const id = stateId(limit, key);
        const { number, cells } = stateOf(limit, id);
        const units = settleIn(limit, cells, 0, nowMs, charge, cost, number === noState ? undefined : number);
        keep(limit, id, cells, nowMs, beganByCharge(limit, cells, 0, nowMs, charge, cost) ? noState : number);
        return units;
      }),
    renew: (limit, key, charge) => step((nowMs) => decideUnblocked(limit, key, charge.cost, nowMs, true, charge)),
    reset: (limit, key) =>
      step((nowMs) => {
        deleteState.run(stateId(limit, key));
        const block = blockOf(limit.name, key);
        if (block === undefined) return;
        liftBanIn(block, 0);
        keepBlock(limit.name, key, block, nowMs);
      }),
    block: (name, key, forMs, kind) =>
      step((nowMs) => {
        const block = blockOf(name, key) ?? new Float64Array(blockCells);
        const blocked = blockIn(block, 0, nowMs, forMs, kind);
        keepBlock(name, key, block, nowMs);
        return blocked;
      }),
    unblock: (name, key) => step(() => void deleteBlock.run(blockId(name, key))),
    keyState: (limit, key) =>
      step((nowMs) => {
        const { cells } = stateOf(limit, stateId(limit, key));
        return inspectIn(limit, cells, 0, nowMs, blockOf(limit.name, key));
      }),
    close: () => database.close(),
  };
}

function bytesOf(cells) {
  return new Uint8Array(cells.buffer, cells.byteOffset, cells.byteLength);
}

/** Copies the bytes, which may not begin at a multiple of eight. */
function cellsOf(bytes) {
  return new Float64Array(Uint8Array.from(bytes).buffer);
}
