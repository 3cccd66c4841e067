import type { SqliteDatabase } from "../src/sqlite.js";

/** Whether Node has `node:sqlite`. */
export const isNative: boolean;

/** Opens a SQLite file: with `node:sqlite`, from Node 22.13 on, else with node-sqlite3-wasm, which needs no native code. */
export function openSqlite(path: string): SqliteDatabase & { close(): void };
