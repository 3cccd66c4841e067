#!/usr/bin/env node
import { exitCodes } from "./failure.js";
import { processIo } from "./io.js";
import { run } from "./run.js";

process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
  // The reader may have closed the pipe (`| head`). That is not an error.
  if (code === "EPIPE") return;
  process.exitCode = exitCodes.unwritable;
  processIo.err(`floodgate: standard output cannot be written: ${message}.\n`);
});
// If standard error fails, nothing can be reported.
process.stderr.on("error", () => undefined);

void run(process.argv.slice(2), processIo).then((exitCode) => {
  process.exitCode ??= exitCode;
});
