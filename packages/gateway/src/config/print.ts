import { Document, type Pair, type Scalar } from "yaml";
import type { Resolved } from "./settings.js";
import { type Command, type Settings, settingsOf, variableOf } from "./settings.js";

/**
 * The effective settings as YAML, each with the place that it comes from. Read as a config file, it gives the same settings, but for
 * secrets: those are comments.
 */
export function printSettings(command: Command, { settings, origins }: Resolved): string {
  const lines = settingsOf(command).flatMap(([name, { secret }]) => {
    const value = settings[name];
    if (value === undefined) return [`# ${name}: not set`];
    if (secret === true || (name === "redis" && hasPassword(settings))) {
      return [`# ${name}: ${name === "redis" ? withoutPassword(settings) : "***"} (${origins[name]}; a secret: set ${variableOf(name)})`];
    }
    return [`${line(name, value)} # ${origins[name]}`];
  });
  return `${lines.join("\n")}\n`;
}

function line(name: string, value: unknown): string {
  const document = new Document({ [name]: value });
  const [pair] = (document.contents as unknown as { items: Pair<Scalar, { flow?: boolean } | null>[] }).items;
  if (pair?.value) pair.value.flow = true;
  return document.toString({ lineWidth: 0, flowCollectionPadding: true }).trimEnd();
}

function hasPassword({ redis = "" }: Settings): boolean {
  return new URL(redis).password !== "";
}

function withoutPassword({ redis = "" }: Settings): string {
  const url = new URL(redis);
  url.password = "***";
  return url.href;
}
