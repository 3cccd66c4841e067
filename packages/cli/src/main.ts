#!/usr/bin/env node
import { exitCodes } from "./failure.js";
import { processIo } from "./io.js";
import { run } from "./run.js";

process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
  // Who reads the output may have seen enough (`| head`): that is no fault.
  if (code === "EPIPE") return;
  process.exitCode = exitCodes.unwritable;
  processIo.err(`floodgate: standard output cannot be written: ${message}.\n`);
});
// Then nobody can be told.
process.stderr.on("error", () => undefined);

void run(process.argv.slice(2), processIo).then((exitCode) => {
  process.exitCode ??= exitCode;
});
