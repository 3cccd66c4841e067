import { FloodgateError } from "@floodgate/core";
import { pullRules, pushRules } from "@floodgate/rules";
import type { Command } from "commander";
import { Failure } from "../failure.js";
import type { Io } from "../io.js";
import { examples, formed, type NamesOptions, namesOptions, type RedisOptions, redisOptions } from "../options.js";
import { soundWords, versionWords } from "../output/words.js";
import { withRedis } from "../redis.js";
import { readText, soundRules } from "../rules-text.js";

interface PushOptions extends RedisOptions, NamesOptions {
  readonly ifVersion?: string;
}

export function addPush(program: Command, io: Io): void {
  const command = program
    .command("push")
    .description("Check a file of rules and put it in force: every app that follows the key takes it at once.")
    .argument("<file>", "YAML or JSON; - for standard input");
  namesOptions(redisOptions(command));
  command.option(
    "--if-version <version>",
    "only where this is the version there (0: none yet), so that nobody's work is lost",
    formed(/^(0|[1-9]\d*)$/, "It is a number, as push and pull tell it."),
  );
  examples(
    command,
    "push limits.yaml --redis redis://127.0.0.1:6379",
    "push limits.yaml --redis redis://127.0.0.1:6379 --if-version 7",
  ).action((file: string, options: PushOptions) => push(io, file, options));
}

async function push(io: Io, file: string, options: PushOptions): Promise<void> {
  const { text, name } = await readText(io, file);
  const { rules } = soundRules(io, text, name, options);
  const { rulesKey, ifVersion } = options;
  const version = await withRedis(options, async (redis) => {
    try {
      return await pushRules(redis, rulesKey, text, ifVersion === undefined ? {} : { ifVersion });
    } catch (error) {
      if (!(error instanceof FloodgateError) || error.code !== "FLOODGATE_RULES_CONFLICT") throw error;
      const there = (await pullRules(redis, rulesKey))?.version ?? "0";
      throw new Failure(
        "refused",
        `${rulesKey} is at version ${there}, not ${ifVersion}: somebody else has pushed. Pull that, make your change there, and push it with --if-version ${there}.`,
        { cause: error },
      );
    }
  });
  io.out(soundWords(name, rules) + versionWords(rulesKey, version));
}
