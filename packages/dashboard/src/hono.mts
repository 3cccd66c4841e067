export * from "./hono.js";
