import { FloodgateError } from "@floodgate/core";

export function invalidOption(message: string): FloodgateError {
  return new FloodgateError("FLOODGATE_INVALID_OPTION", message);
}
