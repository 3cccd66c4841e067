export { type DatabaseStoreOptions, databaseStore } from "./database-store.js";
export type { Change, DatabaseDriver, Loaded, Promised, Row, Swapped, ValidTime, Version } from "./driver.js";
