import type { Command } from "commander";
import type { Io } from "../io.js";
import { readKeyState, undefinedIfForeign } from "../key-state.js";
import { examples } from "../options.js";
import { foreignText, keyStateJson, keyStateText } from "../output/status.js";
import { json } from "../output/terminal.js";
import { type Target, type TargetOptions, targetOptions, withTarget } from "../target.js";

export function addReset(program: Command, io: Io): void {
  const command = program
    .command("reset")
    .description("Delete what a key has used of a limit, under every plan, and lift its ban. Shows the state before and after.");
  examples(
    targetOptions(command),
    "reset --rule posts --key 42 --redis redis://127.0.0.1:6379",
    "reset --rule per-ip --key 2001:db8::1 --redis redis://127.0.0.1:6379",
  ).action((options: TargetOptions) => change(io, options, ({ limiter, key }) => limiter.reset(key, { by })));
}

/** Who acts, in events. */
export const by = "floodgate CLI";

/** Changes the state of a key, and shows it before and after. */
export function change(io: Io, options: TargetOptions, make: (target: Target) => unknown): Promise<void> {
  return withTarget(io, options, async (target) => {
    // Reset must delete a foreign value rather than fail.
    const before = await readKeyState(target, options.plan).catch(undefinedIfForeign);
    await make(target);
    const after = await readKeyState(target, options.plan);
    if (options.json === true) {
      io.out(json({ before: before === undefined ? null : keyStateJson(target, before), after: keyStateJson(target, after) }));
    } else {
      const was = before === undefined ? foreignText(io, target) : keyStateText(io, target, before);
      io.out(`Before: ${was}\nAfter: ${keyStateText(io, target, after)}`);
    }
  });
}
