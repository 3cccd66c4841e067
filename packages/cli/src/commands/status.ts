import type { Command } from "commander";
import type { Io } from "../io.js";
import { lookAt } from "../key-state.js";
import { examples } from "../options.js";
import { keyStateJson, keyStateText } from "../output/key-state.js";
import { json } from "../output/terminal.js";
import { type SubjectOptions, subjectOptions, withSubject } from "../subject.js";

export function addStatus(program: Command, io: Io): void {
  const command = program.command("status").description("Tell what a key has used of a rule, when it may go on, and whether it is banned.");
  examples(
    subjectOptions(command),
    "status --rule posts --key 42 --redis redis://127.0.0.1:6379",
    "status --rule login --key 203.0.113.9 --key ann --file limits.yaml --redis redis://127.0.0.1:6379",
  ).action((options: SubjectOptions) => status(io, options));
}

function status(io: Io, options: SubjectOptions): Promise<void> {
  return withSubject(io, options, async (subject) => {
    const state = await lookAt(subject, options.plan);
    if (options.json === true) io.out(json(keyStateJson(subject, state)));
    else io.out(keyStateText(io, subject, state));
  });
}
