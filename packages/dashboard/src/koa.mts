export * from "./koa.js";
