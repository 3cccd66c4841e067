import { yamlOf } from "../../src/config/problems.js";
import { flagOf, type Setting, type Settings, table } from "../../src/config/settings.js";

const intro = `# Settings of \`floodgate serve\` and \`floodgate gateway\`

Each setting has one name. \`trustedPeers\` is \`trustedPeers:\` in the config file, \`--trusted-peers\` as a flag, and
\`FLOODGATE_TRUSTED_PEERS\` as an environment variable. Flags win over environment variables, over the file, over defaults.

- \`--config floodgate.yaml\` (or \`FLOODGATE_CONFIG\`) names the file, YAML or JSON. A path in it is relative to the file.
- \`--print-config\` prints the settings in force, and where each comes from.
- A switch that is on is turned off by its flag with \`--no-\`: \`--no-dashboard\`.
- As a flag, a list is written \`a,b\`, and a map \`a=b,c=d\`.
- A secret has no flag, because all users of a machine see the arguments of processes. Write it to a file, or set the variable.
`;

/** The page of the docs, in Markdown. A test compares it with the file. */
export function settingsPage(): string {
  const all = Object.entries(table) as [keyof Settings, Setting<unknown>][];
  const groups = [...new Set(all.map(([, { group }]) => group))];
  return [intro, ...groups.map((group) => `## ${group}\n\n${settingsTable(all.filter(([, setting]) => setting.group === group))}`)].join(
    "\n",
  );
}

function settingsTable(settings: readonly (readonly [keyof Settings, Setting<unknown>])[]): string {
  const rows = settings.map(([name, setting]) => {
    const only = setting.only === undefined ? "" : ` (${setting.only})`;
    const meaning = setting.description.replaceAll("|", "\\|").replaceAll("<", "&lt;");
    return [`\`${name}\`${only}`, flagText(name, setting), defaultText(setting), meaning];
  });
  return `${tableOf([["setting", "flag", "default", "meaning"], ...rows])}\n`;
}

/** A table in Markdown, with columns of one width, as the formatter of the repository writes them. */
function tableOf(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] as readonly string[]).map((_, column) => Math.max(...rows.map((row) => (row[column] as string).length)));
  const line = (cells: readonly string[]): string => `| ${cells.map((cell, i) => cell.padEnd(widths[i] as number)).join(" | ")} |`;
  const [head, ...body] = rows.map(line);
  return [head, line(widths.map((width) => "-".repeat(width))), ...body].join("\n");
}

/** The flag as the command line takes it. A secret has none. */
function flagText(name: keyof Settings, { secret, type, default: value }: Setting<unknown>): string {
  if (secret === true) return "";
  return type.placeholder === undefined && value === true ? `\`${flagOf(name).replace("--", "--no-")}\`` : `\`${flagOf(name)}\``;
}

function defaultText({ default: value }: Setting<unknown>): string {
  if (typeof value !== "function") return value === undefined ? "" : `\`${yamlOf(value)}\``;
  const ofCommand = value as (command: string) => unknown;
  return `\`${yamlOf(ofCommand("serve"))}\` (serve), \`${yamlOf(ofCommand("gateway"))}\` (gateway)`;
}
