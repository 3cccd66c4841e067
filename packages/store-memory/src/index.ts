export { type MemoryStoreOptions, memoryStore } from "./memory-store.js";
export type { MemoryStore } from "./table-store.js";
