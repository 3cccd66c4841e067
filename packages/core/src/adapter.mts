export * from "./adapter.js";
