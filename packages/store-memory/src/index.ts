export { type MemoryStore, type MemoryStoreOptions, memoryStore } from "./memory-store.js";
