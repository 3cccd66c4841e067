#!/usr/bin/env node
import { processIo } from "./io.js";
import { run } from "./run.js";

// Who reads the output may have seen enough (`| head`): that is no fault.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});

void run(process.argv.slice(2), processIo).then((exitCode) => {
  process.exitCode = exitCode;
});
