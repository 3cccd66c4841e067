#!/usr/bin/env node
import { run } from "./run.js";

run(process.argv.slice(2), {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  hasColors: process.stdout.isTTY === true && process.stdout.hasColors(),
}).then(
  (exitCode) => {
    process.exitCode = exitCode;
  },
  (error) => {
    process.stderr.write(`floodgate-migrate: ${error instanceof Error ? error.message : error}\n`);
    process.exitCode = 74;
  },
);
