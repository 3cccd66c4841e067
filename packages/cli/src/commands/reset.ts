import { FloodgateError } from "@floodgate/core";
import type { Command } from "commander";
import type { Io } from "../io.js";
import { lookAt } from "../key-state.js";
import { examples } from "../options.js";
import { foreignText, keyStateJson, keyStateText } from "../output/key-state.js";
import { json } from "../output/terminal.js";
import { type SubjectOptions, subjectOptions, withSubject } from "../subject.js";

export function addReset(program: Command, io: Io): void {
  const command = program
    .command("reset")
    .description("Forget what a key has used of a rule, under every plan, and lift its ban; show what was and what is.");
  examples(
    subjectOptions(command),
    "reset --rule posts --key 42 --redis redis://127.0.0.1:6379",
    "reset --rule per-ip --key 2001:db8::1 --redis redis://127.0.0.1:6379",
  ).action((options: SubjectOptions) => reset(io, options));
}

function reset(io: Io, options: SubjectOptions): Promise<void> {
  return withSubject(io, options, async (subject) => {
    const before = await lookAt(subject, options.plan).catch(nothingIfForeign);
    await subject.limiter.reset(subject.key);
    const after = await lookAt(subject, options.plan);
    if (options.json === true) {
      io.out(json({ before: before === undefined ? null : keyStateJson(subject, before), after: keyStateJson(subject, after) }));
    } else {
      const was = before === undefined ? foreignText(io, subject) : keyStateText(io, subject, before);
      io.out(`Before: ${was}\nAfter: ${keyStateText(io, subject, after)}`);
    }
  });
}

/** A reset is the way out where something else stands in the place of a state. */
function nothingIfForeign(error: unknown): undefined {
  if (!(error instanceof FloodgateError) || error.code !== "FLOODGATE_FOREIGN_VALUE") throw error;
}
