import pino, { type DestinationStream, type Logger } from "pino";
import type { Settings } from "../config/settings.js";

/** Where log lines go. */
export interface LogTarget extends DestinationStream {
  /** Whether a person reads them. */
  readonly isTTY?: boolean | undefined;
}

export function createLog({ logLevel }: Settings, target: LogTarget): Logger {
  return pino({ level: logLevel, base: null, messageKey: "message", timestamp: pino.stdTimeFunctions.isoTime }, target);
}
