/** A rule that many apps start with. */
export interface Preset {
  readonly name: string;
  /** What it is for, as `init` asks for it and as the file says it. */
  readonly purpose: string;
  readonly limit: number;
  readonly window: string;
  /** Default: the sliding window counter, as `limit` and `window` alone. */
  readonly algorithm?: string;
  /** The lines of the rule that are neither its name nor its limit. */
  readonly lines: readonly string[];
  /** The key that the app must define, if there is one. */
  readonly appKey?: string;
}

/** In the order in which `init` offers them. The first is chosen unless something else is. */
export const presets: readonly Preset[] = [
  { name: "per-ip", purpose: "All requests of one client address", limit: 100, window: "1m", lines: ["key: ip"] },
  {
    name: "login",
    purpose: "Logins, by address: slows down guessing passwords",
    limit: 5,
    window: "15m",
    // Strict: however a client times its tries, no more of them pass.
    algorithm: "sliding-window-log",
    lines: ["match: { method: POST, path: /login }", "key: ip"],
  },
  {
    name: "per-user",
    purpose: "All requests of one signed-in user",
    limit: 1000,
    window: "1h",
    lines: ["key: user", "onMissingKey: skip # anonymous requests are not counted by this rule"],
    appKey: "user",
  },
  {
    name: "api-key",
    purpose: "An API, by the key in its header",
    limit: 60,
    window: "1m",
    lines: ["match: { path: /api/* }", "key: secret:header:x-api-key # only a digest of the key is stored"],
  },
  {
    name: "writes",
    purpose: "Requests that change something, by address",
    limit: 30,
    window: "1m",
    lines: ["match: { method: [POST, PUT, PATCH, DELETE] }", "key: ip"],
  },
  { name: "everyone", purpose: "The whole app together: protects what is behind it", limit: 1000, window: "1s", lines: ["key: global"] },
];

/** A preset with the numbers that were chosen. */
export interface ChosenRule {
  readonly preset: Preset;
  readonly limit: number;
  readonly window: string;
}

/** A rules file of this name, with comments that say what to do next. */
export function rulesFile(file: string, rules: readonly ChosenRule[], isShadow: boolean): string {
  const appKeys = [...new Set(rules.flatMap(({ preset }) => preset.appKey ?? []))];
  const heading = [
    `# The limits of this app. Check them with: floodgate check ${file}`,
    `# Try them on an access log with: floodgate simulate access.log --rules ${file}`,
    `# Load them with: rateLimit({ rules: await fileRules(${JSON.stringify(file)}) })`,
    ...appKeys.map((key) => `# The app must say what the key \`${key}\` is: keys: { ${key}: (req) => req.${key}?.id }`),
  ];
  const bodies = rules.map(({ preset, limit, window }) => {
    const { algorithm } = preset;
    const numbers =
      algorithm === undefined
        ? [`limit: ${limit}`, `window: ${window}`]
        : [`policy: { algorithm: ${algorithm}, limit: ${limit}, window: ${window} }`];
    const lines = [`name: ${preset.name}`, ...preset.lines, ...numbers];
    if (isShadow) lines.push("mode: shadow # counts and reports, but rejects nothing. Remove this line to enforce the limit");
    return [`  # ${preset.purpose}`, ...lines.map((line, i) => `  ${i === 0 ? "- " : "  "}${line}`)].join("\n");
  });
  return `${heading.join("\n")}\nrules:\n${bodies.join("\n\n")}\n`;
}
