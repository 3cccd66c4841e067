import { yamlOf } from "./problems.js";
import { flagOf, type Setting, type Settings, table } from "./settings.js";

const intro = `# Settings of \`floodgate serve\` and \`floodgate gateway\`

Each setting has one name. \`trustedPeers\` is \`trustedPeers:\` in the config file, \`--trusted-peers\` as a flag, and
\`FLOODGATE_TRUSTED_PEERS\` as an environment variable. Flags win over environment variables, over the file, over defaults.

- \`--config floodgate.yaml\` (or \`FLOODGATE_CONFIG\`) names the file, YAML or JSON. A path in it is relative to the file.
- \`--print-config\` prints the settings in force, and where each comes from.
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
    const flag = setting.secret === true ? "" : `\`${flagOf(name)}\``;
    const only = setting.only === undefined ? "" : ` (${setting.only})`;
    return `| \`${name}\`${only} | ${flag} | ${defaultText(setting)} | ${setting.description.replaceAll("|", "\\|").replaceAll("<", "&lt;")} |`;
  });
  return ["| setting | flag | default | meaning |", "| --- | --- | --- | --- |", ...rows, ""].join("\n");
}

function defaultText({ default: value }: Setting<unknown>): string {
  if (typeof value !== "function") return value === undefined ? "" : `\`${yamlOf(value)}\``;
  const ofCommand = value as (command: string) => unknown;
  return `\`${yamlOf(ofCommand("serve"))}\` (serve), \`${yamlOf(ofCommand("gateway"))}\` (gateway)`;
}
