import { parseDuration } from "@floodgate/core";
import { type Command, InvalidArgumentError, Option } from "commander";
import { Failure } from "./failure.js";

/** The options that locate Redis, and the rules in it. */
export interface RedisOptions {
  readonly redis?: string;
  readonly cluster?: true;
  readonly rulesKey: string;
}

/** The names that the app defines, if given. */
export interface NamesOptions {
  readonly keys?: readonly string[];
  readonly costs?: readonly string[];
}

export function redisOptions(command: Command): Command {
  // Not parsed here, because commander would print an invalid URL with its password.
  return command
    .addOption(
      new Option("--redis <url>", "the URL of Redis: redis://, rediss:// or unix://, with user, password and database").env(
        "FLOODGATE_REDIS",
      ),
    )
    .option("--cluster", "Redis is a Cluster")
    .option(
      "--rules-key <key>",
      "the Redis key that holds the rules",
      matching(/./s, "It must be the name of a Redis key."),
      "floodgate:rules",
    );
}

export function namesOptions(command: Command): Command {
  return command
    .option("--keys <names>", "the keys that the app defines, separated by commas: rules may use no others", names)
    .option("--costs <names>", "the costs that the app defines, separated by commas", names);
}

export function ipv6PrefixOption(command: Command): Command {
  return command.option("--ipv6-prefix <bits>", "the number of bits of an IPv6 address that identify a client", wholeNumber(1, 128), 56);
}

/** `--json`: standard output is JSON, or empty if the command fails before it knows an answer. */
export interface JsonOption {
  readonly json?: true;
}

/** Makes a parser of option values that must match a pattern. `message` is the error. */
export function matching(pattern: RegExp, message: string): (value: string) => string {
  return (value) => {
    if (pattern.test(value)) return value;
    throw new InvalidArgumentError(message);
  };
}

/** The parser of an option that is a duration. */
export function durationOption(value: string): string {
  try {
    parseDuration(value);
    return value;
  } catch {
    throw new InvalidArgumentError("It must be a duration such as 15m, 1h or 7d, at most 13031248d.");
  }
}

/**
 * Adds an option that must be given. commander's own check would come before that of unknown options, and name the missing one where another
 * has a mistake.
 */
export function requiredOption(command: Command, flags: string, description: string, parse: (value: string) => string = String): Command {
  const option = new Option(flags, description).argParser(parse);
  return command.addOption(option).hook("preAction", (_, action) => {
    if (action.getOptionValue(option.attributeName()) === undefined) {
      action.error(`error: required option '${flags}' not specified`, { code: "commander.missingMandatoryOptionValue" });
    }
  });
}

/**
 * The name and the value of `--key user=42`.
 * @throws Failure if the text has no name. The error does not show the text, because the text may be a secret.
 */
export function namedValue(option: string, text: string, separator: string, example: string): [name: string, value: string] {
  const at = text.indexOf(separator);
  if (at > 0) return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
  throw new Failure("usage", `a --${option} has no name and value. Write --${option} ${example}.`);
}

/** Collects the values of an option that may be repeated. */
export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

export function examples(command: Command, ...lines: readonly string[]): Command {
  return command.addHelpText("after", `\nExamples:\n${lines.map((line) => `  $ floodgate ${line}`).join("\n")}`);
}

function names(list: string): readonly string[] {
  return list
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

/** Makes a parser of option values that are whole numbers between two bounds. */
export function wholeNumber(least: number, most: number): (value: string) => number {
  return (value) => {
    const number = Number(value);
    if (/^\d+$/.test(value) && number >= least && number <= most) return number;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}
