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
  /** Whether it also fits what is no HTTP request, which has no address, path or header. */
  readonly fitsCalls?: true;
}

/** What an app is built with. */
export interface Framework {
  readonly name: string;
  readonly title: string;
  /** The packages to install beside `@floodgate/rules`. */
  readonly packages: string;
  /** What the app imports beside `fileRules`: names, and where they are from. */
  readonly imports: readonly (readonly [names: string, from: string])[];
  /** The app's lines that take the options. */
  use(options: string): readonly string[];
  /** The function that reads a key of the app. */
  key(name: string): string;
  /** Whether it limits something else than HTTP requests. */
  readonly isForCalls?: true;
}

const ofRequest = (name: string): string => `(req) => req.${name}?.id`;

const middleware = (name: string): Omit<Framework, "title"> => ({
  name,
  packages: `@floodgate/${name}`,
  imports: [["rateLimit", `@floodgate/${name}`]],
  use: (options) => [`app.use(rateLimit({ ${options} }));`],
  key: ofRequest,
});

/** In the order in which `init` offers them. */
export const frameworks: readonly Framework[] = [
  { ...middleware("express"), title: "Express" },
  { ...middleware("koa"), title: "Koa", key: (name) => `(ctx) => ctx.state.${name}?.id` },
  { ...middleware("hono"), title: "Hono", key: (name) => `(c) => c.get("${name}")?.id` },
  {
    ...middleware("fastify"),
    title: "Fastify",
    use: (options) => [`await app.register(rateLimit({ ${options} }));`],
    key: (name) => `(request) => request.${name}?.id`,
  },
  {
    ...middleware("nestjs"),
    title: "NestJS",
    imports: [
      ["FloodgateGuard, FloodgateModule", "@floodgate/nestjs"],
      ["Module", "@nestjs/common"],
      ["APP_GUARD", "@nestjs/core"],
    ],
    use: (options) => [
      "@Module({",
      `  imports: [FloodgateModule.forRootAsync({ useFactory: async () => ({ ${options} }) })],`,
      "  providers: [{ provide: APP_GUARD, useClass: FloodgateGuard }],",
      "})",
      "export class LimitsModule {} // Import it in your module",
    ],
    key: (name) => `(context) => context.switchToHttp().getRequest().${name}?.id`,
  },
  {
    ...middleware("fetch"),
    title: "Request and Response: Next.js, SvelteKit, Astro, Nitro, React Router, Elysia, Bun, Deno, Workers",
    use: (options) => [
      `const limit = rateLimit({ ${options} });`,
      "// Where the runtime knows no address: const { response } = await limit.check(request, { ip });",
      "export default { fetch: limit(handler) };",
    ],
    key: (name) => `({ context }) => context.${name}?.id`,
  },
  {
    ...middleware("node"),
    title: "node:http, node:http2, connect",
    use: (options) => [
      `const limit = rateLimit({ ${options} });`,
      "// With connect, polka or restana: app.use(limit);",
      'server.on("request", (req, res) => limit(req, res, (error) => (error ? res.writeHead(500).end() : serve(req, res))));',
    ],
  },
  {
    name: "calls",
    title: "No HTTP: calls, jobs, messages, tools of an agent",
    packages: "@floodgate/core @floodgate/store-memory",
    imports: [
      ["limitFor", "@floodgate/core"],
      ["memoryStore", "@floodgate/store-memory"],
    ],
    use: (options) => [
      `const limit = limitFor({ ${options}, store: memoryStore() });`,
      "await limit.enforce(call); // throws if it is limited",
    ],
    key: (name) => `(call) => call.${name}`,
    isForCalls: true,
  },
];

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
    fitsCalls: true,
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
  {
    name: "everyone",
    purpose: "The whole app together: protects what is behind it",
    limit: 1000,
    window: "1s",
    lines: ["key: global"],
    fitsCalls: true,
  },
];

/** The presets that an app with this framework can use. */
export function presetsFor(framework: Framework | undefined): readonly Preset[] {
  return framework?.isForCalls === true ? presets.filter(({ fitsCalls }) => fitsCalls) : presets;
}

/** A preset with the numbers that were chosen. */
export interface ChosenRule {
  readonly preset: Preset;
  readonly limit: number;
  readonly window: string;
}

/** A rules file of this name, with comments that say what to do next. */
export function rulesFile(file: string, rules: readonly ChosenRule[], isShadow: boolean, framework: Framework | undefined): string {
  const appKeys = [...new Set(rules.flatMap(({ preset }) => preset.appKey ?? []))];
  const key = framework?.key ?? ofRequest;
  const keys = appKeys.map((name) => `${name}: ${key(name)}`).join(", ");
  const load = `rules: await fileRules(${JSON.stringify(file)})${keys === "" ? "" : `, keys: { ${keys} }`}`;
  const heading = [
    `# The limits of this app. Check them with: floodgate check ${file}`,
    `# Try them on an access log with: floodgate simulate access.log --rules ${file}`,
    ...(framework === undefined ? [`# Load them with: rateLimit({ ${load} })`] : codeOf(framework, load)),
    ...appKeys.map((name) => `# Your app must say what the key \`${name}\` is: the function in \`keys\` is an example.`),
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

/** The comments with what to install, and with the app's code. */
function codeOf({ packages, imports, use }: Framework, options: string): readonly string[] {
  const lines = [...imports, ["fileRules", "@floodgate/rules"]].map(([names, from]) => `import { ${names} } from "${from}";`);
  return [
    `# Install: npm install ${packages} @floodgate/rules`,
    "# Load them with:",
    ...[...lines, ...use(options)].map((line) => `#   ${line}`),
  ];
}
