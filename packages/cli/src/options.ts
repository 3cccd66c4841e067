import { type Command, InvalidArgumentError, Option } from "commander";

/** Where Redis is, and where the rules are in it. */
export interface RedisOptions {
  readonly redis?: string;
  readonly cluster?: true;
  readonly rulesKey: string;
}

/** The names that the app defines, where they are said. */
export interface NamesOptions {
  readonly keys?: readonly string[];
  readonly costs?: readonly string[];
}

export function redisOptions(command: Command): Command {
  // Not parsed here: commander shows what it cannot parse, and this may hold a password.
  return command
    .addOption(new Option("--redis <url>", "redis:// or rediss://, with user, password and database").env("FLOODGATE_REDIS"))
    .option("--cluster", "Redis is a Cluster")
    .option("--rules-key <key>", "the key that holds the rules", formed(/./s, "It is the name of a key in Redis."), "floodgate:rules");
}

export function namesOptions(command: Command): Command {
  return command
    .option("--keys <names>", "the keys that the app defines, by commas: rules may name no others", names)
    .option("--costs <names>", "the costs that the app defines, likewise", names);
}

export function ipv6PrefixOption(command: Command): Command {
  return command.option("--ipv6-prefix <bits>", "how many bits of an IPv6 address make one client", bits, 56);
}

/** For options whose values have a form; what it is goes into the refusal. */
export function formed(form: RegExp, what: string): (value: string) => string {
  return (value) => {
    if (form.test(value)) return value;
    throw new InvalidArgumentError(what);
  };
}

/** For options that may be given several times. */
export function each(value: string, before: readonly string[] = []): readonly string[] {
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

function bits(value: string): number {
  const prefix = Number(value);
  if (/^\d+$/.test(value) && prefix >= 1 && prefix <= 128) return prefix;
  throw new InvalidArgumentError("It is a number from 1 to 128.");
}
