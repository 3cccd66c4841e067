import { startApi } from "../api/start.js";
import { startAsk } from "../ask/ask.js";
import type { Command } from "../config/settings.js";
import { startRls } from "../envoy/server.js";
import { startProxy } from "../proxy/proxy.js";
import type { StartPart } from "../service/part.js";

/** What each command starts, beside the admin server. */
export const parts: Readonly<Record<Command, readonly StartPart[]>> = {
  serve: [startAsk, startApi, startRls],
  gateway: [startProxy],
};
