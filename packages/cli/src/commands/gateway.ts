import { once } from "node:events";
import { FloodgateError } from "@floodgate/core";
import type { Command as Name, Resolved, Settings, Sources } from "@floodgate/gateway/settings";
import { RulesError } from "@floodgate/rules";
import { type Command, Option } from "commander";
import { Failure } from "../failure.js";
import { readText } from "../files.js";
import { interruption } from "../interruption.js";
import { type Io, processIo } from "../io.js";
import { collect, examples } from "../options.js";
import { sanitizeLines } from "../output/terminal.js";
import { problemsFailure } from "../rules/valid-rules.js";

/** The options that are no settings, and the settings by the names that commander gives them. */
interface Options {
  readonly config?: string;
  readonly printConfig?: true;
  readonly [setting: string]: unknown;
}

/** The settings are those of a package that the command line does without. */
type Gateway = typeof import("@floodgate/gateway/settings");

const descriptions: Readonly<Record<Name, string>> = {
  serve: "Decide for gateways: nginx, Caddy, Traefik, HAProxy, Apache and Envoy ask it.",
  gateway: "Pass requests on to a server, and limit them: a reverse proxy.",
};

const shown: Readonly<Record<Name, readonly [string, ...string[]]>> = {
  serve: [
    "serve --rules limits.yaml",
    "serve --rules limits.yaml --redis redis://127.0.0.1:6379 --key user=header:x-user",
    "serve --config floodgate.yaml --print-config",
  ],
  gateway: [
    "gateway --rules limits.yaml --upstream http://127.0.0.1:3000",
    "gateway --rules limits.yaml --upstream http://127.0.0.1:3000 --listen :80 --trusted-peers loopback,10.0.0.0/8",
  ],
};

/** Adds `serve` and `gateway`. Their flags are added if the arguments name one of them and @floodgate/gateway is installed. */
export async function addGateways(program: Command, io: Io, args: readonly string[]): Promise<void> {
  for (const name of ["serve", "gateway"] as const) {
    const command = program.command(name).description(descriptions[name]);
    const gateway = args.includes(name) ? await installed() : undefined;
    if (gateway !== undefined) {
      addSettings(command, io, name, gateway);
      examples(command, ...shown[name]);
      continue;
    }
    command
      .allowUnknownOption()
      .allowExcessArguments()
      .addHelpText("after", `\n${missing(name)}`)
      .action(() => {
        throw new Failure("usage", missing(name));
      });
  }
}

function missing(name: Name): string {
  return `${name} needs the package @floodgate/gateway. Run npm install @floodgate/gateway where @floodgate/cli is installed (--global if that is), or run npx -p @floodgate/cli -p @floodgate/gateway floodgate ${name}.`;
}

async function installed(): Promise<Gateway | undefined> {
  try {
    return await import("@floodgate/gateway/settings");
  } catch (error) {
    if (/^(ERR_)?MODULE_NOT_FOUND$/.test((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}

/** Adds a flag for each setting of a command. */
function addSettings(command: Command, io: Io, name: Name, gateway: Gateway): void {
  const { settingsOf, defaultOf, flagOf } = gateway;
  command.option("-c, --config <file>", "read settings from this file (YAML or JSON); flags and environment variables win over it");
  for (const [setting, row] of settingsOf(name)) {
    const { type, description, secret } = row;
    if (secret === true) continue;
    const byDefault = defaultOf(row, name);
    const flag = flagOf(setting);
    const isOn = type.placeholder === undefined && byDefault === true;
    const written = type.placeholder === undefined ? (isOn ? flag.replace("--", "--no-") : flag) : `${flag} <${type.placeholder}>`;
    const option = new Option(written, isOn ? `do not ${description}` : `${description}${defaultWords(byDefault)}`);
    command.addOption(type.repeats === true ? option.argParser(collect) : option);
  }
  for (const setting of othersOf(gateway, name)) command.addOption(new Option(`${flagOf(setting)} [value]`).hideHelp());
  command.option("--print-config", "print the settings and where each comes from, and exit");
  command.action((options: Options) => start(io, command, name, gateway, options));
}

/** The settings of the other command only. */
function othersOf({ settingsOf, table }: Gateway, name: Name): (keyof Settings)[] {
  const own = settingsOf(name).map(([setting]) => setting);
  return (Object.keys(table) as (keyof Settings)[]).filter((setting) => !own.includes(setting));
}

/** The default as a flag writes it. None for what is off or empty without the flag. */
function defaultWords(value: unknown): string {
  if (value === undefined || value === false) return "";
  if (typeof value === "object" && !Array.isArray(value)) return "";
  return ` (default: ${value})`;
}

async function start(io: Io, command: Command, name: Name, settings: Gateway, options: Options): Promise<void> {
  const resolved = checkedSettings(io, name, settings, await sourcesOf(io, command, name, settings, options));
  for (const note of resolved.notes) io.err(`floodgate: ${note}\n`);
  if (options.printConfig === true) {
    io.out(settings.printSettings(name, resolved));
    return;
  }
  const { signal, ignore } = interruption();
  // The rules are read anew by themselves, so SIGHUP means nothing. It must not end the process.
  const nothing = (): void => undefined;
  process.on("SIGHUP", nothing);
  try {
    const { serve, gateway } = await import("@floodgate/gateway");
    const running = await (name === "serve" ? serve : gateway)(resolved.settings).catch((error) => refuse(io, resolved, error));
    if (!signal.aborted) await once(signal, "abort");
    await running.close();
  } finally {
    ignore();
    process.off("SIGHUP", nothing);
    // A reader of the log that has stopped must not keep the process.
    if (io === processIo) setTimeout(() => process.exit(), 1000).unref();
  }
}

/**
 * @throws Failure if the rules are missing or have several mistakes; then all are printed before. Else the error itself. It names a setting
 * as it was given: `--listen`, not `listen`.
 */
function refuse(io: Io, { settings: { rules }, origins }: Resolved, error: unknown): never {
  if (error instanceof FloodgateError) {
    error.message = error.message.replace(/^`(\w+)`/, (shown, name: keyof Settings) =>
      /^(?:--|FLOODGATE_)/.test(origins[name] ?? "") ? origins[name] : shown,
    );
  }
  if (rules !== undefined && error instanceof FloodgateError && error.code === "FLOODGATE_RULES_UNAVAILABLE") {
    throw new Failure("usage", error.message, { cause: error });
  }
  if (!(error instanceof RulesError) || error.problems.length === 1) throw error;
  io.err(sanitizeLines(`${error.message}\n`));
  throw problemsFailure(rules ?? "the rules", error.problems);
}

/** @throws Failure if settings are wrong. All mistakes are printed before. */
function checkedSettings(io: Io, name: Name, { resolveSettings, SettingsError }: Gateway, sources: Sources): Resolved {
  try {
    return resolveSettings(name, sources);
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    if (error.problems.length === 1) throw new Failure("usage", error.message, { cause: error });
    io.err(sanitizeLines(`${error.message}\n`));
    throw new Failure("usage", `${error.problems.length} settings are wrong.`, { cause: error });
  }
}

async function sourcesOf(io: Io, command: Command, name: Name, gateway: Gateway, options: Options): Promise<Sources> {
  const { flagOf, settingsOf } = gateway;
  const attributeOf = (setting: keyof Settings) => new Option(flagOf(setting)).attributeName();
  const isGiven = (setting: keyof Settings) => command.getOptionValueSource(attributeOf(setting)) === "cli";
  const path = options.config ?? process.env["FLOODGATE_CONFIG"];
  for (const setting of othersOf(gateway, name)) {
    if (!isGiven(setting)) continue;
    const other = name === "serve" ? "gateway" : "serve";
    throw new Failure("usage", `${flagOf(setting)} is a setting of floodgate ${other}, not of floodgate ${name}. Remove it.`);
  }
  const given = settingsOf(name).flatMap(([setting]): [keyof Settings, string][] => {
    return isGiven(setting) ? [[setting, options[attributeOf(setting)] as string]] : [];
  });
  const file = path === undefined || path === "" ? undefined : await readText(io, path);
  return { flags: Object.fromEntries(given), env: process.env, ...(file && { file: { path: file.name, text: file.text } }) };
}
