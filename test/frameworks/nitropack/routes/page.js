import { decisionOf } from "@floodgate/node";
import { defineEventHandler } from "h3";

export default defineEventHandler(async (event) => {
  const { status } = await globalThis.$fetch.raw("/");
  return { remaining: decisionOf(event.node.req)?.remaining, own: status };
});
