import { readFileSync } from "node:fs";
import { join } from "node:path";
import { FloodgateError } from "@floodgate/core";
import { Command, CommanderError } from "commander";
import { addCheck } from "./commands/check.js";
import { addGateways } from "./commands/gateway.js";
import { addGrant, addRevoke } from "./commands/grant.js";
import { addInit } from "./commands/init.js";
import { addKeyCommands } from "./commands/keys.js";
import { addMigrate } from "./commands/migrate.js";
import { addMigration } from "./commands/migration.js";
import { addPull, addPush } from "./commands/push-pull.js";
import { addRules } from "./commands/rules.js";
import { addSimulate } from "./commands/simulate.js";
import { addTop } from "./commands/top.js";
import { addWhy } from "./commands/why.js";
import { exitCodes, Failure } from "./failure.js";
import type { Io } from "./io.js";
import { sanitize, sanitizeLines } from "./output/terminal.js";

/**
 * Runs the command line.
 * @param args the arguments after the command's name.
 * @returns the exit code. The promise never rejects.
 */
export async function run(args: readonly string[], io: Io): Promise<number> {
  const program = createProgram(io, args);
  try {
    await addGateways(program, io, args);
    addMigrate(program);
    await addCompletion(program, args);
    const [command, name] = args;
    const isKnown = command !== "help" || name === undefined || program.commands.some((one) => one.name() === name);
    // For the help of an unknown command, commander prints its whole help and no error.
    await program.parseAsync(isKnown ? args : args.slice(1), { from: "user" });
    return exitCodes.ok;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    const { debug } = program.opts<{ debug?: boolean }>();
    io.err(`floodgate: ${debug === true ? sanitizeLines(stackOf(error)) : sanitize(messageOf(error))}\n`);
    return exitCodeOf(error);
  }
}

/** In the order of the help. */
const commands = [
  addInit,
  addCheck,
  addSimulate,
  addPush,
  addPull,
  addRules,
  addTop,
  addWhy,
  addKeyCommands,
  addGrant,
  addRevoke,
  addMigration,
];

/** Throws a CommanderError where commander would exit the process. */
function createProgram(io: Io, args: readonly string[]): Command {
  const program = new Command("floodgate")
    .description(
      "Rate limits by rules: check rules, try them on access logs, activate them through Redis, show and reset what a key has used.",
    )
    .version(versionOf(), "-v, --version", "print the version")
    .option("--debug", "print the stack of an error")
    .helpCommand("help [command]", "print the help of a command")
    .exitOverride()
    .showHelpAfterError("See --help.")
    .configureOutput({
      writeOut: (text) => io.out(text),
      // Errors repeat arguments, which may contain control characters.
      writeErr: (text) => io.err(sanitizeLines(withOtherName(text, program, args))),
      getOutHasColors: () => io.hasColors,
      getErrHasColors: () => io.hasColors,
    })
    .addHelpText(
      "after",
      "\nExit codes: 0 success, 1 refused (invalid rules, another version), 2 Redis does not answer, 64 invalid arguments, 74 output cannot be written.",
    );
  for (const add of commands) add(program, io);
  return program;
}

/** What an option is called in another command, or elsewhere. Its spelling is not similar, or is more so to an option of another meaning. */
const otherNames: Readonly<Record<string, readonly string[]>> = {
  "--rules": ["--file"],
  "--file": ["--rules"],
  "--policy": ["--compare"],
  "--port": ["--listen", "--redis"],
  "--host": ["--listen", "--redis"],
};

/** An error of commander, with the option of the command that is meant by an unknown one. */
function withOtherName(text: string, program: Command, [name]: readonly string[]): string {
  const [, unknown = ""] = /unknown option '(--[a-z]+)['=]/.exec(text) ?? [];
  const command = program.commands.find((one) => one.name() === name);
  const meant = otherNames[unknown]?.find((other) => command?.options.some(({ long }) => long === other));
  return meant === undefined ? text : text.replace(/\n(\(Did you mean.*\n)?/, `\n(Did you mean ${meant}?)\n`);
}

/**
 * Adds `completion`, which prints a script for a shell, and the hidden command that the script asks for suggestions. The library that answers
 * them is loaded only then.
 */
async function addCompletion(program: Command, [name]: readonly string[]): Promise<void> {
  if (name === "completion" || name === "complete") {
    const { default: tab } = await import("@bomb.sh/tab/commander");
    tab(program, { completionCommandName: "completion" });
  } else {
    program.command("completion").description("Print a completion script for a shell: zsh, bash, fish or powershell.").argument("<shell>");
  }
}

function versionOf(): string {
  return JSON.parse(readFileSync(join(__dirname, "..", "package.json"), "utf8")).version;
}

function exitCodeOf(error: unknown): number {
  if (error instanceof Failure) return error.exitCode;
  const { code } = error instanceof FloodgateError ? error : { code: "" };
  if (redisCodes.includes(code)) return exitCodes.unreachable;
  return code === "FLOODGATE_INVALID_OPTION" ? exitCodes.usage : exitCodes.refused;
}

/** The codes of errors for which Redis is the reason. */
const redisCodes: readonly string[] = ["FLOODGATE_STORE_TIMEOUT", "FLOODGATE_STORE_FAULT", "FLOODGATE_RULES_UNAVAILABLE"];

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? `${error.stack}` : `${error.stack}\ncaused by: ${stackOf(error.cause)}`;
}
