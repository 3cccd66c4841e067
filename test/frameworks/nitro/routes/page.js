import { decisionOf } from "@floodgate/fetch";
import { defineHandler } from "nitro/deps/h3";

export default defineHandler(async (event) => {
  const { status } = await fetch("/");
  return { remaining: decisionOf(event.req)?.remaining, own: status };
});
