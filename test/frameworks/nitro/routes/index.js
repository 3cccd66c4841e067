import { decisionOf } from "@floodgate/fetch";
import { defineHandler } from "nitro/deps/h3";

export default defineHandler((event) => ({ remaining: decisionOf(event.req)?.remaining }));
