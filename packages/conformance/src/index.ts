// The suite for stores

// The suite for adapters
export * from "./adapter/index.js";
export { type StoreConformanceOptions, storeConformance } from "./store/conformance.js";
export type { ClosableStore, MakeStore, Runner } from "./store/world.js";
