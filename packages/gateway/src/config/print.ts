import { yamlOf } from "./problems.js";
import { type Command, type Resolved, settingsOf, variableOf } from "./settings.js";

/**
 * The effective settings as YAML, each with the place that it comes from. Read as a config file, it gives the same settings, but for
 * secrets: those are comments.
 */
export function printSettings(command: Command, { settings, origins }: Resolved): string {
  const lines = settingsOf(command).map(([name, { secret }]) => {
    const value = settings[name];
    if (value === undefined) return `# ${name}: not set`;
    const hidden = secret === true ? "***" : name === "redis" ? withoutPassword(value as string) : undefined;
    if (hidden !== undefined) return `# ${name}: ${hidden} (${origins[name]}; a secret: set ${variableOf(name)})`;
    return `${name}: ${yamlOf(value)} # ${origins[name]}`;
  });
  return `${lines.join("\n")}\n`;
}

/** The URL with stars in place of its password. Undefined if it has none. */
function withoutPassword(redis: string): string | undefined {
  const shown = redis.replace(/^(\w+:\/\/[^/:]*:)[^/]+@/, "$1***@");
  return shown === redis ? undefined : shown;
}
