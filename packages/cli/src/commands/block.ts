import type { Duration } from "@floodgate/core";
import type { Command } from "commander";
import type { Io } from "../io.js";
import { durationOption, examples } from "../options.js";
import { type TargetOptions, targetOptions } from "../target.js";
import { by, change } from "./reset.js";

interface BlockOptions extends TargetOptions {
  readonly for: Duration;
}

export function addBlock(program: Command, io: Io): void {
  const command = program
    .command("block")
    .description(
      "Reject every request of a key under a rule for a time. A reset does not lift the block. Shows the state before and after.",
    )
    .requiredOption("--for <duration>", "how long: 15m, 1h, 7d", durationOption);
  examples(
    targetOptions(command),
    "block --rule posts --key 42 --for 1h --redis redis://127.0.0.1:6379",
    "block --rule per-ip --key 2001:db8::1 --for 7d --redis redis://127.0.0.1:6379",
  ).action((options: BlockOptions) => change(io, options, ({ limiter, key }) => limiter.block(key, options.for, { by })));
}

export function addUnblock(program: Command, io: Io): void {
  const command = program
    .command("unblock")
    .description("Lift the block and the ban of a key. What the key has used stays. Shows the state before and after.");
  examples(targetOptions(command), "unblock --rule posts --key 42 --redis redis://127.0.0.1:6379").action((options: TargetOptions) =>
    change(io, options, ({ limiter, key }) => limiter.unblock(key, { by })),
  );
}
