import { FloodgateError } from "@floodgate/core";

export function timeout(timeoutMs: number): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_STORE_TIMEOUT",
    `Redis did not answer within ${Math.round(timeoutMs)} ms. Whether it decided is unknown; if it has not yet, it will charge nothing. Look at its latency and its connection, or raise \`timeoutMs\`.`,
  );
}

/** Redis answered other requests meanwhile, so it is not at fault. */
export function queueTimeout(timeoutMs: number): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_QUEUE_TIMEOUT",
    `The request waited ${Math.round(timeoutMs)} ms behind others that Redis answered, and was not sent. Nothing was charged. This process has more requests than it can handle: give it fewer, or raise \`timeoutMs\`.`,
  );
}

/** Redis or its client refused a whole batch. */
export function fault(cause: unknown): FloodgateError {
  const text = cause instanceof Error ? cause.message : String(cause);
  return new FloodgateError("FLOODGATE_STORE_FAULT", `Redis could not decide: ${oneLine(text)}`, { cause });
}

/** One step of a batch failed. */
export function stepFault(text: string, key: string): FloodgateError {
  if (text.includes("WRONGTYPE")) {
    return new FloodgateError(
      "FLOODGATE_FOREIGN_VALUE",
      `The Redis key ${JSON.stringify(key)} holds a value of another type, which Floodgate has not written and does not overwrite. Delete it (the limiter's \`reset\` does), or give redisStore another \`prefix\`.`,
    );
  }
  return new FloodgateError("FLOODGATE_STORE_FAULT", `Redis could not decide for the key ${JSON.stringify(key)}: ${oneLine(text)}`);
}

/** A server's message as a part of one line, cut to 300 characters. */
function oneLine(text: string): string {
  return (text.length > 300 ? `${text.slice(0, 297)}...` : text).replace(/\s+/g, " ");
}
