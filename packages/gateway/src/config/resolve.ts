import { dirname, resolve } from "node:path";
import { nearest } from "@floodgate/core/rules";
import { readYaml } from "@floodgate/rules";
import { isUnix } from "./address.js";
import { conflicts } from "./conflicts.js";
import { SettingsError, shownValue, yamlOf } from "./problems.js";
import { type Command, defaultOf, flagOf, type Resolved, type Setting, type Settings, settingsOf, table, variableOf } from "./settings.js";

/** The places that settings come from. Flags win over environment variables, over the file, over defaults. */
export interface Sources {
  /** The values of flags, by the names of settings. True and false for a flag without a value. */
  readonly flags?: Readonly<Record<string, string | boolean | readonly string[]>>;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly file?: { readonly path: string; readonly text: string };
  /** Settings given in code. They win over all others. */
  readonly code?: Readonly<Record<string, unknown>>;
}

/** Where a value is given, in the words of messages. */
interface Place {
  readonly origin: string;
  readonly subject: string;
  /** How a value is written here. */
  readonly write: (text: string) => string;
  /** The beginning of messages. */
  readonly prefix?: string;
  /** The value as it was written, if it was a text. */
  readonly text?: string;
}

/**
 * Reads all sources and checks every value.
 * @throws SettingsError with all problems.
 */
export function resolveSettings(command: Command, sources: Sources): Resolved {
  const resolver = new Resolver(command);
  resolver.readFile(sources.file);
  resolver.readEnvironment(sources.env ?? {});
  resolver.readFlags(sources.flags ?? {});
  resolver.readCode(sources.code ?? {});
  return resolver.result();
}

class Resolver {
  readonly #command: Command;
  readonly #known: ReadonlyMap<string, Setting<unknown>>;
  readonly #given = new Map<string, { readonly value: unknown; readonly origin: string }>();
  readonly #problems: string[] = [];
  readonly #notes: string[] = [];

  constructor(command: Command) {
    this.#command = command;
    this.#known = new Map(settingsOf(command));
  }

  readFile(file: Sources["file"]): void {
    if (file === undefined) return;
    const { value, problems, problemAt, problemAtKey } = readYaml(file.text);
    const at = ({ line, column }: { readonly line: number; readonly column: number }) => `${file.path}:${line}:${column}: `;
    const add = (found: Parameters<typeof at>[0], message: string) => this.#problems.push(`${at(found)}${message}`);
    for (const problem of problems) add(problem, problem.message);
    // An empty file, or one with comments only.
    if (problems.length > 0 || value === null || value === undefined) return;
    if (typeof value !== "object" || Array.isArray(value)) {
      add(problemAt([], ""), `The file must be a map of settings, but was ${shownValue(value)}. Write listen: 127.0.0.1:8080.`);
      return;
    }
    for (const [name, raw] of Object.entries(value)) {
      const setting = this.#known.get(name);
      if (setting === undefined) {
        add(problemAtKey([name], ""), this.#unknown(name));
        continue;
      }
      const origin = `${file.path}:${problemAtKey([name], "").line}`;
      const write = (text: string) => `${name}: ${yamlOf(setting.type.fromText(text))}`;
      const place = { origin, subject: `\`${name}\``, write, prefix: at(problemAt([name], "")) };
      this.#set(name, setting, raw, place, dirname(resolve(file.path)));
    }
  }

  readEnvironment(env: Readonly<Record<string, string | undefined>>): void {
    for (const [name, setting] of this.#known) {
      const variable = variableOf(name as keyof Settings);
      const text = env[variable];
      if (text === undefined || text === "") continue;
      const write = (text: string) => `${variable}=${text}`;
      this.#set(name, setting, setting.type.fromText(text), { origin: variable, subject: variable, write, text });
    }
    const variables = (Object.keys(table) as (keyof Settings)[]).map(variableOf);
    for (const name of Object.keys(env)) {
      if (!name.startsWith("FLOODGATE_") || variables.includes(name) || name === "FLOODGATE_CONFIG") continue;
      // Kubernetes makes variables with the names of services.
      if (/_(?:SERVICE|PORT)(?:_|$)/.test(name)) continue;
      const near = nearest(name, variables);
      if (near !== undefined) this.#notes.push(`The environment variable ${name} means nothing. Did you mean ${near}?`);
    }
  }

  readFlags(flags: NonNullable<Sources["flags"]>): void {
    for (const [name, setting] of this.#known) {
      const text = flags[name];
      if (text === undefined) continue;
      const flag = flagOf(name as keyof Settings);
      if (name === "redis" && /^\w+:\/\/[^/@]*:[^/@]+@/.test(`${text}`)) {
        this.#problems.push(
          `${flag} holds a password, which all users of this machine can see. Set ${variableOf("redis")} to the URL, or write the password to a file: ${flagOf("redisPasswordFile")} /run/secrets/redis.`,
        );
      }
      const value = typeof text === "boolean" ? text : setting.type.fromText(typeof text === "string" ? text : text.join(","));
      this.#set(name, setting, value, { origin: flag, subject: flag, write: (text) => `${flag} ${text}`, text: `${text}` });
    }
  }

  /** A complete set of settings has those of the other command too. */
  readCode(code: Readonly<Record<string, unknown>>): void {
    for (const [name, value] of Object.entries(code)) {
      if (value === undefined) continue;
      const setting = Object.hasOwn(table, name) ? (table[name as keyof Settings] as Setting<unknown>) : undefined;
      if (setting === undefined) {
        this.#problems.push(`${this.#command}: ${this.#unknown(name)}`);
        continue;
      }
      const write = (text: string) => `${name}: ${JSON.stringify(setting.type.fromText(text))}`;
      this.#set(name, setting, value, { origin: "code", subject: `\`${name}\``, write, prefix: `${this.#command}: ` });
    }
  }

  result(): Resolved {
    const values: Record<string, unknown> = {};
    const origins: Record<string, string> = {};
    for (const [name, setting] of Object.entries(table) as [string, Setting<unknown>][]) {
      const own = this.#given.get(name);
      values[name] = own === undefined ? defaultOf(setting, this.#command) : own.value;
      origins[name] = own?.origin ?? "default";
    }
    const resolved = { settings: values as unknown as Settings, origins: origins as Resolved["origins"], notes: this.#notes };
    // A value that is missing or wrong would be reported twice.
    if (this.#problems.length === 0) this.#problems.push(...conflicts(this.#command, resolved));
    if (this.#problems.length > 0) throw new SettingsError(this.#problems);
    return resolved;
  }

  #set(
    name: string,
    { type, secret, example }: Setting<unknown>,
    value: unknown,
    { origin, subject, write, prefix = "", text }: Place,
    base = "",
  ): void {
    const { success, data } = type.schema.safeParse(value);
    const full = success ? withPaths(data, type.isPath === true, base) : undefined;
    const reason = success ? (type.reason?.(data) ?? whyNoSocket(full)) : undefined;
    if (reason !== undefined) {
      this.#problems.push(`${prefix}${subject}: ${reason}`);
      return;
    }
    if (success) {
      this.#given.set(name, { value: full, origin });
      return;
    }
    // A URL may hold a password.
    const isSecret = secret === true || name === "redis" || `${text ?? value}`.includes("@");
    const given = isSecret ? "is not" : `was ${shownValue(text ?? value)}`;
    const meant = typeof value === "string" || typeof value === "number" ? type.meant?.(`${value}`) : undefined;
    this.#problems.push(`${prefix}${subject} must be ${type.what}, but ${given}. Write ${write(meant ?? example)}.`);
  }

  #unknown(name: string): string {
    const shown = name.length > 60 ? `${name.slice(0, 57)}...` : name;
    if (Object.hasOwn(table, name)) {
      const other = table[name as keyof Settings].only ?? "";
      return `\`${shown}\` is a setting of floodgate ${other}, not of floodgate ${this.#command}. Remove it.`;
    }
    const names = [...this.#known.keys()];
    const near = nearest(name, names);
    const advice = near === undefined ? `The settings are ${names.join(", ")}.` : `Did you mean \`${near}\`?`;
    return `There is no setting \`${shown}\`. ${advice}`;
  }
}

/** Paths are relative to where they are written, or to the working directory, which may have been deleted if all paths are absolute. */
function withPaths(value: unknown, isPath: boolean, base: string): unknown {
  if (typeof value !== "string") return value;
  if (isPath) return resolve(base, value);
  // The URL of a Redis may have a password.
  return isUnix(value) && !/^unix:\/\/[^/]*@/.test(value) ? `unix:${resolve(base, value.slice("unix:".length))}` : value;
}

/** The most bytes of a socket's path, which the system's structure for it bounds. Node cuts a longer path, and says nothing. */
const maxSocketPath = process.platform === "linux" ? 107 : 103;

/** Why a value is no socket that can be used; undefined if it is one, or no socket at all. */
function whyNoSocket(value: unknown): string | undefined {
  if (typeof value !== "string" || !isUnix(value)) return undefined;
  const bytes = Buffer.byteLength(value) - "unix:".length;
  if (bytes <= maxSocketPath) return undefined;
  return `the path of the socket has ${bytes} bytes, above the maximum of ${maxSocketPath}. Choose a shorter one.`;
}
