import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { addCheck } from "./commands/check.js";
import { addPull } from "./commands/pull.js";
import { addPush } from "./commands/push.js";
import { addReset } from "./commands/reset.js";
import { addStatus } from "./commands/status.js";
import type { Io } from "./io.js";
import { harmlessLines } from "./output/terminal.js";

/** The commands, wired. It throws a CommanderError where commander would end the process. */
export function createProgram(io: Io): Command {
  const program = new Command("floodgate")
    .description("Rate limits by rules: check them, put them in force, see and reset what a key has used.")
    .version(versionOf(), "-V, --version", "print the version")
    .option("--debug", "with an error, show where it comes from")
    .helpCommand(false)
    .exitOverride()
    .showHelpAfterError("See --help.")
    .configureOutput({
      writeOut: (text) => io.out(text),
      // It shows what it does not understand.
      writeErr: (text) => io.err(harmlessLines(text)),
      getOutHasColors: () => io.hasColors,
      getErrHasColors: () => io.hasColors,
    })
    .addHelpText(
      "after",
      "\nExit codes: 0 done, 1 refused (bad rules, another version), 2 Redis does not answer, 64 called wrongly, 74 output cannot be written.",
    );
  for (const add of [addCheck, addPush, addPull, addStatus, addReset]) add(program, io);
  return program;
}

function versionOf(): string {
  return JSON.parse(readFileSync(join(__dirname, "..", "package.json"), "utf8")).version;
}
