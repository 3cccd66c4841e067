#!/usr/bin/env node
import { run } from "./run.js";

process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
  // The reader may have closed the pipe (`| head`). That is not an error.
  if (code === "EPIPE") return;
  process.stderr.write(`floodgate-migrate: standard output cannot be written: ${message}.\n`);
  process.exitCode = 74;
});
// If standard error fails, nothing can be reported.
process.stderr.on("error", () => undefined);

run(process.argv.slice(2), {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  hasColors: process.stdout.isTTY === true && process.stdout.hasColors(),
}).then(
  (exitCode) => {
    process.exitCode ??= exitCode;
  },
  (error) => {
    process.stderr.write(`floodgate-migrate: ${error instanceof Error ? error.message : error}\n`);
    process.exitCode = 74;
  },
);
