import { FloodgateError } from "@floodgate/core";
import { pullRules, pushRules } from "@floodgate/rules";
import type { Command } from "commander";
import { Failure } from "../failure.js";
import { readText, writeText } from "../files.js";
import type { Io } from "../io.js";
import { examples, type JsonOption, matching, type NamesOptions, namesOptions, type RedisOptions, redisOptions } from "../options.js";
import { validRulesText, versionText } from "../output/format.js";
import { json, sanitizeLines } from "../output/terminal.js";
import { withRedis } from "../redis/connection.js";
import { noRules } from "../rules/rules-in-force.js";
import { validRules } from "../rules/valid-rules.js";

interface PushOptions extends RedisOptions, NamesOptions, JsonOption {
  readonly ifVersion?: string;
}

interface PullOptions extends RedisOptions, JsonOption {
  readonly output?: string;
}

export function addPush(program: Command, io: Io): void {
  const command = program
    .command("push")
    .description("Check a rules file and write it to Redis. All apps that follow the key load it at once.")
    .argument("<file>", "YAML or JSON; - for standard input");
  namesOptions(redisOptions(command))
    .option(
      "--if-version <version>",
      "push only if this is the stored version (0: none yet), so that nobody's change is lost",
      matching(/^(0|[1-9]\d*)$/, "It must be a version number, as push and pull print it."),
    )
    .option("--json", "print JSON");
  examples(
    command,
    "push limits.yaml --redis redis://127.0.0.1:6379",
    "push limits.yaml --redis redis://127.0.0.1:6379 --if-version 7",
  ).action((file: string, options: PushOptions) => push(io, file, options));
}

async function push(io: Io, file: string, options: PushOptions): Promise<void> {
  const { text, name } = await readText(io, file);
  const { rules } = validRules(io, text, name, options);
  const { rulesKey, ifVersion } = options;
  const version = await withRedis(options, async (redis) => {
    try {
      return await pushRules(redis, rulesKey, text, ifVersion === undefined ? {} : { ifVersion });
    } catch (error) {
      if (!(error instanceof FloodgateError) || error.code !== "FLOODGATE_RULES_CONFLICT") throw error;
      const stored = (await pullRules(redis, rulesKey))?.version ?? "0";
      throw new Failure(
        "refused",
        `${rulesKey} is at version ${stored}, not ${ifVersion}: somebody else has pushed. Pull the rules, make your change again, and push with --if-version ${stored}.`,
        { cause: error },
      );
    }
  });
  if (options.json === true) io.out(json({ file: name, rules: rules.length, problems: [], key: rulesKey, version }));
  else io.out(validRulesText(name, rules) + versionText(rulesKey, version));
}

export function addPull(program: Command, io: Io): void {
  const command = program.command("pull").description("Print the active rules as they were pushed. Their version goes to standard error.");
  redisOptions(command).option("--output <file>", "write the rules to a file").option("--json", "print JSON");
  examples(command, "pull --redis redis://127.0.0.1:6379 > limits.yaml", "pull --redis redis://127.0.0.1:6379 --output limits.yaml").action(
    (options: PullOptions) => pull(io, options),
  );
}

async function pull(io: Io, { output, ...options }: PullOptions): Promise<void> {
  const { rulesKey: key } = options;
  const found = await withRedis(options, (redis) => pullRules(redis, key));
  if (found === undefined) throw noRules(key);
  const { text, version } = found;
  if (output !== undefined) await writeText(output, text);
  if (options.json === true) return io.out(json({ key, version, ...(output === undefined ? { text } : { file: output }) }));
  if (output === undefined) io.out(io.isTerminal ? sanitizeLines(text) : text);
  io.err(versionText(key, version));
}
