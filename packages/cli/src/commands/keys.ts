import type { Duration } from "@floodgate/core";
import type { Limit } from "@floodgate/core/store";
import { storedKey } from "@floodgate/store-redis";
import type { Command } from "commander";
import type { Io } from "../io.js";
import { durationOption, examples, requiredOption } from "../options.js";
import { foreignText, keyStateJson, keyStateText, leasedText } from "../output/status.js";
import { json } from "../output/terminal.js";
import { readKeyState, undefinedIfForeign } from "../redis/key-state.js";
import { leasedOf } from "../redis/stored-keys.js";
import { type Target, type TargetOptions, targetOptions, withTarget } from "../redis/target.js";

interface BlockOptions extends TargetOptions {
  readonly for: Duration;
}

/** Who acts, in events. */
const by = "floodgate CLI";

/** Adds the commands that show and change the state of a key. */
export function addKeyCommands(program: Command, io: Io): void {
  const add = (name: string, description: string): Command => targetOptions(program.command(name).description(description));
  const [byUser, byAddress] = ["--rule posts --key 42", "--rule per-ip --key 2001:db8::1"];
  const redis = "--redis redis://127.0.0.1:6379";

  examples(
    add("status", "Show what a key has used of a limit, when it may continue, and whether it is banned."),
    `status ${byUser} ${redis}`,
    `status --rule login --key 203.0.113.9 --key ann --file limits.yaml ${redis}`,
  ).action((options: TargetOptions) => show(io, options));

  examples(
    add("reset", "Delete what a key has used of a limit, under every plan, and lift its ban. Shows the state before and after."),
    `reset ${byUser} ${redis}`,
    `reset ${byAddress} ${redis}`,
  ).action((options: TargetOptions) => change(io, options, ({ limiter, key }) => limiter.reset(key, { by })));

  const block = program
    .command("block")
    .description(
      "Reject every request of a key under a rule for a time. A reset does not lift the block. Shows the state before and after.",
    );
  requiredOption(block, "--for <duration>", "how long: 15m, 1h, 7d", durationOption);
  examples(targetOptions(block), `block ${byUser} --for 1h ${redis}`, `block ${byAddress} --for 7d ${redis}`).action(
    (options: BlockOptions) => change(io, options, ({ limiter, key }) => limiter.block(key, options.for, { by })),
  );

  examples(
    add("unblock", "Lift the block and the ban of a key. What the key has used stays. Shows the state before and after."),
    `unblock ${byUser} ${redis}`,
  ).action((options: TargetOptions) => change(io, options, ({ limiter, key }) => limiter.unblock(key, { by })));
}

function show(io: Io, options: TargetOptions): Promise<void> {
  return withTarget(io, options, async (target, redis) => {
    const state = await readKeyState(target, options.plan);
    const leased = await leasedOf(redis, storedKey(options.prefix, target.keyText, target.rule.fixed as Limit));
    if (options.json === true) io.out(json({ ...keyStateJson(target, state), leased: leased ?? null }));
    else io.out(keyStateText(io, target, state) + leasedText(leased));
  });
}

/** Changes the state of a key, and shows it before and after. */
function change(io: Io, options: TargetOptions, make: (target: Target) => unknown): Promise<void> {
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
