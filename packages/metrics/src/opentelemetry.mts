export * from "./opentelemetry.js";
