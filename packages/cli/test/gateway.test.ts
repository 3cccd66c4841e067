import { describe, expect, it, test } from "vitest";
import { floodgate } from "./command.js";
import { limits, tempFolder } from "./files.js";

const folder = tempFolder();
const nowhere = ["--listen", "127.0.0.1:0", "--admin", "false"];

describe("serve and gateway refuse, with the exit code of wrong arguments,", () => {
  it.each<[string, string[], string]>([
    ["no rules", ["serve"], "There are no rules. Write --rules limits.yaml. Or, for rules in Redis: --rules-key floodgate:rules."],
    ["no upstream", ["gateway", "--rules", "r"], "There is no server to pass requests to. Write --upstream http://127.0.0.1:3000."],
    [
      "a rules file that does not exist",
      ["serve", "--rules", "/none/r.yaml", ...nowhere],
      "/none/r.yaml: the rules cannot be read: the file does not exist.",
    ],
    ["a config file that does not exist", ["serve", "--config", "/none/f.yaml"], "/none/f.yaml does not exist."],
    [
      "a port alone",
      ["serve", "--rules", "r", "--listen", "8085"],
      'host:port, or unix:/path of a socket, but was "8085". Write --listen 127.0.0.1:8085.',
    ],
    [
      "an upstream without a scheme",
      ["gateway", "--rules", "r", "--upstream", "app:3000"],
      'but was "app:3000". Write --upstream http://app:3000.',
    ],
    ["a Redis without a scheme", ["serve", "--rules", "r", "--redis", "db:6379"], "but is not. Write --redis redis://db:6379."],
    [
      "a key from a cookie",
      ["serve", "--rules", "r", "--key", "user=cookie:id"],
      'but was "user=cookie:id". Write --key user=header:x-user.',
    ],
    ["an unknown gateway", ["serve", "--rules", "r", "--presets", "ngnix"], 'but was "ngnix". Write --presets nginx,caddy.'],
    ["an unknown peer", ["serve", "--rules", "r", "--trusted-peers", "x"], '"uniquelocal", "unix", but was "x"'],
    [
      "a flag of gateway",
      ["serve", "--rules", "r", "--upstream", "x"],
      "--upstream is a setting of floodgate gateway, not of floodgate serve. Remove it.",
    ],
    ["a flag of serve", ["gateway", "--rls", "x"], "--rls is a setting of floodgate serve, not of floodgate gateway. Remove it."],
  ])("%s", async (_, args, message) => {
    const { code, out, err } = await floodgate(args);
    expect({ code, out }).toEqual({ code: 64, out: "" });
    expect(err).toContain(message);
    expect(err.trim().split("\n")).toHaveLength(1);
  });
});

describe("messages are in the words of flags and rules files:", () => {
  const rule = (more: string): string => folder.write("rule.yaml", `rules:\n  - { name: a, ${more} }\n`);
  const gateway = (rules: string, ...more: string[]): string[] => [
    "gateway",
    "--upstream",
    "http://h",
    "--rules",
    rules,
    ...nowhere,
    ...more,
  ];
  it.each<[string, () => string[], string]>([
    [
      "a key without a source",
      () => gateway(rule("key: user, limit: 1, window: 1m")),
      "Define your own names by flags: --key user=header:x-user.",
    ],
    [
      "plans without a source",
      () => gateway(rule("key: ip, limit: 1, window: 1m, plans: { pro: { limit: 9 } }")),
      "Say where the name of a plan comes from: --plan header:x-plan.",
    ],
    [
      "a named cost",
      () => gateway(rule("key: ip, limit: 1, window: 1m, cost: tokens")),
      "only an app can define such a name. Write a number.",
    ],
    ["a named settlement", () => gateway(rule("key: ip, limit: 1, window: 1m, settle: tokens")), "only an app can define such a name."],
    [
      "numbers that are too large",
      () => gateway(rule("key: ip, limit: 1000000, window: 365d")),
      "rules[0]: these numbers need exact arithmetic",
    ],
    [
      "a limit that is too large",
      () => gateway(rule("key: ip, policy: { algorithm: gcra, limit: 1e20, window: 1m }")),
      "rules[0]: `limit` must be",
    ],
    [
      "a name that is there",
      () => gateway(rule("key: ip, limit: 1, window: 1m"), "--key", "ip=header:x"),
      '--key cannot define "ip" anew.',
    ],
    [
      "a file",
      () => gateway(rule("key: ip, limit: 1, window: 1m"), "--secret-file", "/none"),
      "floodgate: --secret-file: /none cannot be used: it does not exist.",
    ],
    [
      "an address",
      () => gateway(rule("key: ip, limit: 1, window: 1m"), "--admin", "unix:/none/a"),
      "floodgate: --admin: cannot listen on unix:/none/a: ",
    ],
    [
      "peers",
      () => gateway(rule("key: ip, limit: 1, window: 1m"), "--trusted-peers", "10.0.0.0/99"),
      "--trusted-peers: an entry must be an address",
    ],
  ])("%s", async (_, args, message) => {
    const { code, err } = await floodgate(args());
    expect(code).not.toBe(0);
    expect(err).toContain(message);
    expect(err).not.toMatch(/=>|\breq\b|middleware|function|tuple|[a-z]Window|`[a-z]+[A-Z]\w+`/);
  });
});

test("several mistakes in rules are printed one a line, and counted", async () => {
  const rules = folder.write("wrong.yaml", "rules:\n  - { name: a, limt: 1, window: 1m }\n  - { name: b, limit: 1, windw: 1m }\n");
  const { code, err } = await floodgate(["serve", "--rules", rules, ...nowhere]);
  expect(code).toBe(1);
  const lines = err.trim().split("\n");
  expect(lines[0]).toContain("wrong.yaml:2:16: rules[0] has no option `limt`.");
  expect(lines[1]).toContain("wrong.yaml:3:26: rules[1] has no option `windw`.");
  expect(lines.at(-1)).toMatch(/^floodgate: 2 problems in .*wrong\.yaml\.$/);
  expect(err).not.toContain("\u{fffd}");
});

test("--print-config prints settings that give the same settings as a config file", async () => {
  const rules = folder.write("limits.yaml", limits);
  const printed = await floodgate(["serve", "--rules", rules, "--key", "user=header:x-user", "--presets", "nginx", "--print-config"]);
  expect(printed).toMatchObject({ code: 0, err: "" });
  const again = await floodgate(["serve", "--config", folder.write("floodgate.yaml", printed.out), "--print-config"]);
  const values = (text: string): string => text.replaceAll(/ # .*$/gm, "");
  expect(values(again.out)).toBe(values(printed.out));
});

test("--help shows the defaults of the command, and no flag of the other one", async () => {
  const serve = (await floodgate(["serve", "--help"])).out.replaceAll(/\s+/g, " ");
  expect(serve).toContain("where requests arrive: host:port or unix:/path (default: 127.0.0.1:8081)");
  expect(serve).toContain("(default: loopback)");
  expect(serve).not.toContain("--upstream");
  const gateway = (await floodgate(["gateway", "--help"])).out.replaceAll(/\s+/g, " ");
  expect(gateway).toContain("where requests arrive: host:port or unix:/path (default: 127.0.0.1:8080)");
  expect(gateway).not.toContain("--presets");
});

test("migrate says where it is", async () => {
  expect(await floodgate(["migrate", "express-rate-limit", "a.js", "--write"])).toMatchObject({
    code: 64,
    err: "floodgate: migrate is a package of its own. Run npx @floodgate/migrate express-rate-limit a.js --write\n",
  });
});

test("the flags of serve and gateway are in their help only", async () => {
  expect((await floodgate(["help", "serve"])).out).toContain("--trusted-peers");
  expect((await floodgate(["--help"])).out).toContain("serve");
});
