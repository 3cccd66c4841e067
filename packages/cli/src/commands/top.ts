import { setTimeout as sleep } from "node:timers/promises";
import { type Duration, parseDuration } from "@floodgate/core";
import type { Command } from "commander";
import { interruption } from "../interruption.js";
import type { Io } from "../io.js";
import { durationOption, examples, ipv6PrefixOption, wholeNumber } from "../options.js";
import { LiveText } from "../output/live-text.js";
import { json } from "../output/terminal.js";
import { lookJson, lookText } from "../output/top.js";
import { withRedis } from "../redis/connection.js";
import { type LookOptions, lookAt } from "../redis/look.js";
import { rulesOptions } from "../rules/rules-in-force.js";

interface TopOptions extends LookOptions {
  readonly every: Duration;
  readonly once?: true;
  readonly rows: number;
}

export function addTop(program: Command, io: Io): void {
  const command = program
    .command("top")
    .description("Show live who is limited now, by what is in Redis: who is blocked, who has nothing left, and who is close to it.");
  rulesOptions(command);
  ipv6PrefixOption(command)
    .option("--every <duration>", "how often to look", durationOption, "2s")
    .option("--once", "look once, and end")
    .option("--rows <keys>", "how many keys to show", wholeNumber(1, 1_000_000), 20)
    .option("--sample <keys>", "how many keys in Redis to look at each time", wholeNumber(1, 1_000_000), 10_000)
    .option("--json", "print a JSON document for each look");
  examples(
    command,
    "top --redis redis://127.0.0.1:6379",
    "top --once --json --redis redis://127.0.0.1:6379",
    "top --every 10s --prefix my-app --redis redis://127.0.0.1:6379",
  ).action((options: TopOptions) => top(io, options));
}

async function top(io: Io, options: TopOptions): Promise<void> {
  const live = io.isTerminal && options.json !== true && options.once !== true ? new LiveText(io) : undefined;
  const { signal, ignore } = interruption(true);
  try {
    await withRedis(options, async (redis) => {
      while (!signal.aborted) {
        const look = await lookAt(io, redis, options);
        if (options.json === true) io.out(json(lookJson(look, options.rows)));
        else if (live === undefined) io.out(lookText(io, look, options.rows));
        else live.draw(lookText(io, look, options.rows));
        if (options.once === true) return;
        // A timer that is longer than this fires at once.
        await sleep(Math.min(parseDuration(options.every), 2 ** 31 - 1), undefined, { signal }).catch(() => undefined);
      }
    });
  } finally {
    ignore();
  }
}
