import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it, onTestFinished, test, vi } from "vitest";
import { stringify } from "yaml";
import { anyCharacter } from "../../../conformance/test/characters.js";
import { printSettings } from "../../src/config/print.js";
import { SettingsError } from "../../src/config/problems.js";
import { resolveSettings, type Sources } from "../../src/config/resolve.js";
import type { Resolved } from "../../src/config/settings.js";
import { type Command, type Settings, settingsOf, table, variableOf } from "../../src/config/settings.js";

const upstream = "http://127.0.0.1:3000";

/** Other values than the example, as texts. Settings that are not here have their example only. */
const more: Partial<Record<keyof Settings, readonly string[]>> = {
  rules: ["limits.json", "./a/../b.yaml", "/etc/limits.yaml"],
  keys: ["user=header:X-User,tenant=jwt:https://example.com/tenant"],
  ipv6Prefix: ["1", "128"],
  redis: ["redis://10.0.0.1", "rediss://user:secret%40@redis.example:6380/3", "unix://user:secret%40@/run/redis.sock?db=3"],
  timeoutMs: ["1", "2147483647"],
  onStoreError: ["allow", "memory"],
  headers: ["draft-7", "false", "draft-6,legacy"],
  listen: [":80", "[::1]:0", "localhost:65535"],
  trustedPeers: ["", "unix", "10.0.0.0/8,2001:db8::/32"],
  admin: ["false", "unix:admin.sock"],
  dashboard: ["true", "false"],
  logKeys: ["plain", "masked"],
  presets: ["nginx"],
  keySecret: ["0123456789abcdef0123456789abcdef"],
};

/** Settings of a command as texts, as a flag has them. */
function texts(command: Command): fc.Arbitrary<Partial<Record<keyof Settings, string>>> {
  const values = settingsOf(command).map(
    ([name, { example, secret }]) => [name, fc.constantFrom(...(secret ? [] : [example]), ...(more[name] ?? []))] as const,
  );
  const all = Object.fromEntries(values) as Record<keyof Settings, fc.Arbitrary<string>>;
  return fc.record(all, { requiredKeys: command === "gateway" ? ["rules", "upstream"] : ["rules"] });
}

/** What sources say together: the settings, or how many mistakes. */
function outcomeOf(command: Command, sources: Sources): Settings | number {
  try {
    return resolveSettings(command, sources).settings;
  } catch (error) {
    if (error instanceof SettingsError) return error.problems.length;
    throw error;
  }
}

function asFile(given: Partial<Record<keyof Settings, string>>): NonNullable<Sources["file"]> {
  const values = Object.entries(given).map(([name, text]) => [name, table[name as keyof Settings].type.fromText(text)]);
  return { path: "floodgate.yaml", text: stringify(Object.fromEntries(values)) };
}

function asEnvironment(given: Partial<Record<keyof Settings, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(given).map(([name, text]) => [variableOf(name as keyof Settings), text]));
}

describe.each(["serve", "gateway"] as const)("the settings of floodgate %s", (command) => {
  it("are the same from flags, environment variables, a file and code", () => {
    fc.assert(
      fc.property(texts(command), (all) => {
        // An empty variable is not set. A secret has no flag, and a flag with a password is refused.
        const given = Object.fromEntries(
          Object.entries(all).filter(([name, text]) => text !== "" && !(name === "redis" && text.includes("@"))),
        );
        const file = outcomeOf(command, { file: asFile(given) });
        expect(outcomeOf(command, { env: asEnvironment(given) })).toEqual(file);
        const { keySecret, ...flags } = given;
        expect(outcomeOf(command, { flags, env: asEnvironment(keySecret === undefined ? {} : { keySecret }) })).toEqual(file);
      }),
      { numRuns: 25 },
    );
  });

  it("are the same after they are printed and read again", () => {
    fc.assert(
      fc.property(texts(command), (given) => {
        let resolved: Resolved;
        try {
          resolved = resolveSettings(command, { file: asFile(given) });
        } catch {
          return;
        }
        const text = printSettings(command, resolved);
        expect(text).not.toMatch(/secret%40|0123456789abcdef/);
        // Secrets are not printed: they stay in the environment.
        const { redis, keySecret } = resolved.settings;
        const env = { FLOODGATE_REDIS: redis, FLOODGATE_KEY_SECRET: keySecret };
        expect(resolveSettings(command, { file: { path: "/elsewhere/floodgate.yaml", text }, env }).settings).toEqual(resolved.settings);
      }),
      { numRuns: 25 },
    );
  });

  it.each(settingsOf(command))(
    "%s has an example that is right, and a default that is right or nothing",
    (name, { type, example, ...setting }) => {
      if (setting.secret !== true) expect(type.schema.safeParse(type.fromText(example)).success).toBe(true);
      const byDefault = typeof setting.default === "function" ? setting.default(command) : setting.default;
      if (byDefault !== undefined) expect(type.schema.safeParse(byDefault).success, name).toBe(true);
    },
  );
});

test("flags win over environment variables, over the file, over defaults", () => {
  const file = { path: "floodgate.yaml", text: "rules: a.yaml\ntimeoutMs: 1\ndrainMs: 1\ncloseMs: 1" };
  const env = { FLOODGATE_TIMEOUT_MS: "2", FLOODGATE_DRAIN_MS: "2", FLOODGATE_RULES: "" };
  const { settings, origins } = resolveSettings("serve", { file, env, flags: { timeoutMs: "3" } });
  expect(settings).toMatchObject({ rules: join(process.cwd(), "a.yaml"), timeoutMs: 3, drainMs: 2, closeMs: 1, prefix: "floodgate" });
  expect(origins).toMatchObject({
    rules: "floodgate.yaml:1",
    timeoutMs: "--timeout-ms",
    drainMs: "FLOODGATE_DRAIN_MS",
    closeMs: "floodgate.yaml:4",
    prefix: "default",
  });
});

test("a path in the file is relative to the file, and one in a flag to the working directory", () => {
  const file = { path: "/etc/floodgate/floodgate.yaml", text: "rules: limits.yaml\nlisten: unix:run.sock\ntrustedPeers: [unix]" };
  const { settings } = resolveSettings("serve", { file, flags: { secretFile: "secret" } });
  expect(settings).toMatchObject({
    rules: "/etc/floodgate/limits.yaml",
    listen: "unix:/etc/floodgate/run.sock",
    secretFile: join(process.cwd(), "secret"),
  });
});

/** The problems of sources. */
function problemsOf(command: Command, sources: Sources): readonly string[] {
  try {
    resolveSettings(command, sources);
    return [];
  } catch (error) {
    return (error as SettingsError).problems;
  }
}

const rules = { rules: "limits.yaml" };

test("settings with absolute paths need no working directory, which may have been deleted", () => {
  onTestFinished(() => void vi.restoreAllMocks());
  vi.spyOn(process, "cwd").mockImplementation(() => {
    throw new Error("ENOENT: no such file or directory, uv_cwd");
  });
  const file = { path: "/etc/floodgate.yaml", text: "secretFile: secret\n" };
  const { settings } = resolveSettings("serve", {
    flags: { rules: "/etc/limits.yaml", listen: "unix:/run/a.sock", trustedPeers: "unix" },
    file,
  });
  expect(settings).toMatchObject({ rules: "/etc/limits.yaml", listen: "unix:/run/a.sock", secretFile: "/etc/secret" });
});

describe("a mistake is named with its place, what was given and what to write", () => {
  it.each<[string, string]>([
    [
      "timeoutMs: soon",
      'f.yaml:1:12: `timeoutMs` must be a time in milliseconds: a whole number from 1 to 2147483647, but was "soon". Write timeoutMs: 100.',
    ],
    ["timeoutMs: 1e99", "f.yaml:1:12: `timeoutMs` must be"],
    ["timeoutMs: -1", "but was -1."],
    ["timeoutMs: .inf", "but was Infinity."],
    ["timeoutMs: 9007199254740993", "but was 9007199254740992."],
    ["timeoutMs:", "but was empty."],
    ["timeoutMs: { a: b }", "but was a map."],
    ["\n\ntimoutMs: 1", "f.yaml:3:1: There is no setting `timoutMs`. Did you mean `timeoutMs`?"],
    ["xyz: 1", "There is no setting `xyz`. The settings are rules, rulesKey"],
    ["constructor: 1", "There is no setting `constructor`."],
    ["__proto__: 1", "f.yaml:1:1: `__proto__` is not a valid name"],
    ["upstream: http://x", "`upstream` is a setting of floodgate gateway, not of floodgate serve. Remove it."],
    ["listen: 80", "must be host:port, or unix:/path of a socket, but was 80. Write listen: 127.0.0.1:80."],
    ["listen: 127.0.0.1:99999", "must be host:port"],
    ["listen: 'http://a:1'", "must be host:port"],
    ["onStoreError: alow", 'must be one of allow, deny, memory, but was "alow"'],
    ["trustedPeers: 10.0.0.0/8", "must be a list of addresses"],
    ["trustedPeers: [unix, 10.0.0.0/99]", '`trustedPeers`: an entry must be an address, a range, or one of "loopback"'],
    ["trustedPeers: [loopbak]", 'Did you mean "loopback"?'],
    ["trustedPeers: [0.0.0.0/0]", "trusts everyone, so that any client could choose its address"],
    ["trustedPeers: [0.0.0.0/1, 128.0.0.0/1]", "together trust everyone"],
    ["keys: { user: x-user }", "header:<name> or jwt:<claim>"],
    ["metrics: on", 'must be true or false, but was "on". Write metrics: true.'],
    ["admin: off", 'or false, but was "off". Write admin: false.'],
    ["headers: No", 'or false, but was "No". Write headers: false.'],
    ["redis: http://user:hunter2@example", "must be a URL of Redis"],
    ["keySecret: short", "`keySecret` must be at least 32 characters, but is not."],
    ["- a", "f.yaml:1:1: The file must be a map of settings, but was the list [ a ]."],
    ["listen: a\nlisten: b", "f.yaml:2:1:"],
    ["a: &a [x]\nb: *a", "f.yaml:"],
    ["a: !!js/function x", "f.yaml:1:4:"],
    ["{".repeat(10_000), "f.yaml:1:1: Too many brackets"],
    ["\u0000", "f.yaml:"],
  ])("%j", (text, message) => {
    const problems = problemsOf("serve", { file: { path: "f.yaml", text }, flags: rules });
    expect(problems.join("\n")).toContain(message);
    expect(problems.join("\n")).not.toMatch(/hunter2|"short"|trustedHops/);
  });

  it("in flags and environment variables", () => {
    expect(problemsOf("serve", { flags: { timeoutMs: "soon", ...rules } })).toEqual([
      '--timeout-ms must be a time in milliseconds: a whole number from 1 to 2147483647, but was "soon". Write --timeout-ms 100.',
    ]);
    expect(problemsOf("serve", { env: { FLOODGATE_METRICS: "1" }, flags: rules })).toEqual([
      'FLOODGATE_METRICS must be true or false, but was "1". Write FLOODGATE_METRICS=true.',
    ]);
    expect(problemsOf("serve", { env: { FLOODGATE_CLUSTER: "yes" }, flags: rules })).toEqual([
      'FLOODGATE_CLUSTER must be true or false, but was "yes". Write FLOODGATE_CLUSTER=true.',
    ]);
  });

  it("a password in a flag, which all users of the machine see", () => {
    const [problem] = problemsOf("serve", { flags: { redis: "redis://:hunter2@127.0.0.1", ...rules } });
    expect(problem).toContain("Set FLOODGATE_REDIS");
    expect(problem).not.toContain("hunter2");
  });

  it.each(["http://user:hunter2@app:3000", "ftp://user:hunter2@app", "http://:hunter2@", "user:hunter2@app"])(
    "a password in the URL of the upstream (%s), which is shown nowhere",
    (url) => {
      const sources: Sources[] = [
        { flags: { ...rules, upstream: url } },
        { flags: rules, env: { FLOODGATE_UPSTREAM: url } },
        { flags: rules, file: { path: "f.yaml", text: stringify({ upstream: url }) } },
        { code: { ...rules, upstream: url } },
      ];
      for (const source of sources) {
        const problems = problemsOf("gateway", source);
        expect(problems).toHaveLength(1);
        expect(problems[0]).toMatch(/upstream|UPSTREAM/);
        expect(problems[0]).not.toContain("hunter2");
      }
    },
  );

  // Node cuts it, and would listen at another path.
  it.each(["listen", "upstream"] as const)("a socket with a path that is too long for the system (%s)", (name) => {
    const flags = (path: string) => ({ rules: "limits.yaml", upstream, trustedPeers: "unix", [name]: `unix:${path}` });
    const path = `/${"é".repeat(60)}`;
    expect(() => resolveSettings("gateway", { flags: flags(path) })).toThrow(
      new RegExp(`^--${name}: the path of the socket has 121 bytes, above the maximum of 10[37]\\. Choose a shorter one\\.$`),
    );
    expect(() => resolveSettings("gateway", { flags: flags(path.slice(0, 50)) })).not.toThrow();
  });

  it("settings that contradict each other", () => {
    expect(problemsOf("gateway", {})).toEqual([
      "There are no rules. Write --rules limits.yaml. Or, for rules in Redis: --rules-key floodgate:rules.",
      `There is no server to pass requests to. Write --upstream ${upstream}.`,
    ]);
    const file = { path: "f.yaml", text: "rulesKey: r\ncluster: true" };
    expect(problemsOf("serve", { flags: rules, file }).join("\n")).toMatch(
      /--rules and --rules-key \(f.yaml:1\) both say .*\n--rules-key \(f.yaml:1\) needs .* Write --redis .*\n--cluster \(f.yaml:2\) needs/,
    );
    expect(problemsOf("serve", { flags: { ...rules, cluster: true, redis: "unix:/run/redis.sock" } })).toEqual([
      "--cluster needs host and port of a node, but --redis is a Unix socket. Write --redis redis://127.0.0.1:6379.",
    ]);
    expect(problemsOf("serve", { flags: { ...rules, listen: "unix:/run/a" } })[0]).toContain("Write --trusted-peers loopback,unix.");
  });
});

test("all of a hundred mistakes are found at once, and no more than a hundred are printed", () => {
  const text = Array.from({ length: 150 }, (_, i) => `wrong${i}: 1`).join("\n");
  const problems = problemsOf("serve", { file: { path: "f.yaml", text }, flags: { timeoutMs: "a", listen: "b", ...rules } });
  expect(problems).toHaveLength(152);
  expect(() => resolveSettings("serve", { file: { path: "f.yaml", text } })).toThrow(/\.\.\. and 50 more\.$/);
});

test.each(["", "\n", "# nothing\n", "---\n", "{}"])("a file without settings (%j) is no mistake", (text) => {
  expect(problemsOf("serve", { file: { path: "f.yaml", text }, flags: rules })).toEqual([]);
});

test("no text makes the reader throw anything but a list of problems", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json(), fc.string({ unit: anyCharacter })), (text) => {
      expect(Array.isArray(problemsOf("serve", { file: { path: "f.yaml", text } }))).toBe(true);
    }),
    { numRuns: 30 },
  );
});

test("a misspelt environment variable is noted, and one of another program is not", () => {
  const env = { FLOODGATE_TIMEOT_MS: "1", FLOODGATE_SERVICE_HOST: "10.0.0.1", FLOODGATE_PORT_8081_TCP_PROTO: "tcp" };
  const { notes } = resolveSettings("serve", { env, flags: rules });
  expect(notes).toEqual(["The environment variable FLOODGATE_TIMEOT_MS means nothing. Did you mean FLOODGATE_TIMEOUT_MS?"]);
});
