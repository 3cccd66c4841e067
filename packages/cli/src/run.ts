import { FloodgateError } from "@floodgate/core";
import { CommanderError } from "commander";
import { exitCodes, Failure } from "./failure.js";
import type { Io } from "./io.js";
import { harmless, harmlessLines } from "./output/terminal.js";
import { createProgram } from "./program.js";

/** Runs the command line with what follows the command's name; answers the exit code, and never rejects. */
export async function run(args: readonly string[], io: Io): Promise<number> {
  const program = createProgram(io);
  try {
    await program.parseAsync(args, { from: "user" });
    return exitCodes.ok;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    const { debug } = program.opts<{ debug?: boolean }>();
    io.err(`floodgate: ${debug === true ? harmlessLines(stackOf(error)) : harmless(messageOf(error))}\n`);
    return exitCodeOf(error);
  }
}

function exitCodeOf(error: unknown): number {
  if (error instanceof Failure) return error.exitCode;
  return error instanceof FloodgateError && ofRedis.includes(error.code) ? exitCodes.unreachable : exitCodes.refused;
}

const ofRedis: readonly string[] = ["FLOODGATE_STORE_TIMEOUT", "FLOODGATE_STORE_FAULT", "FLOODGATE_RULES_UNAVAILABLE"];

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? `${error.stack}` : `${error.stack}\ncaused by: ${stackOf(error.cause)}`;
}
