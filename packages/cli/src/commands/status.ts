import type { Limit } from "@floodgate/core/store";
import { storedKey } from "@floodgate/store-redis";
import type { Command } from "commander";
import type { Io } from "../io.js";
import { readKeyState } from "../key-state.js";
import { examples } from "../options.js";
import { keyStateJson, keyStateText, leasedText } from "../output/status.js";
import { json } from "../output/terminal.js";
import { leasedOf } from "../stored-keys.js";
import { type TargetOptions, targetOptions, withTarget } from "../target.js";

export function addStatus(program: Command, io: Io): void {
  const command = program
    .command("status")
    .description("Show what a key has used of a limit, when it may continue, and whether it is banned.");
  examples(
    targetOptions(command),
    "status --rule posts --key 42 --redis redis://127.0.0.1:6379",
    "status --rule login --key 203.0.113.9 --key ann --file limits.yaml --redis redis://127.0.0.1:6379",
  ).action((options: TargetOptions) => status(io, options));
}

function status(io: Io, options: TargetOptions): Promise<void> {
  return withTarget(io, options, async (target, redis) => {
    const state = await readKeyState(target, options.plan);
    const leased = await leasedOf(redis, storedKey(options.prefix, target.keyText, target.rule.fixed as Limit));
    if (options.json === true) io.out(json({ ...keyStateJson(target, state), leased: leased ?? null }));
    else io.out(keyStateText(io, target, state) + leasedText(leased));
  });
}
