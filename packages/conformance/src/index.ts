// biome-ignore-all assist/source/organizeImports: grouped by suite

// The suite for stores
export { type StoreConformanceOptions, storeConformance } from "./store/conformance.js";
export type { MakeBoundedStore } from "./store/bounded.js";
export type { ClosableStore, MakeStore, Runner } from "./store/world.js";

// The suite for adapters
export * from "./adapter/index.js";
