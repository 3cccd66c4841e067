export { type DatabaseStoreOptions, databaseStore } from "./database-store.js";
export type { Change, DatabaseDriver, DecideAgain, Loaded, Promised, Row, Swap, Swapped, ValidTime, Version } from "./driver.js";
