import { decisionOf } from "@floodgate/node";
import { defineEventHandler } from "h3";

export default defineEventHandler((event) => ({ remaining: decisionOf(event.node.req)?.remaining }));
