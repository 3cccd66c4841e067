import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { limitFor } from "@floodgate/core";
import { fileRules, parseRules } from "@floodgate/rules";
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../store-memory/src/index.js";
import { run } from "../src/index.js";
import { frameworks, presets } from "../src/rules/presets.js";
import { floodgate } from "./command.js";
import { tempFolder } from "./files.js";

const { write, path } = tempFolder();
const rulesOf = (file: string) => parseRules(readFileSync(file, "utf8"), file).rules;

/** Runs `init` on a terminal, and presses these keys once each question is there. */
async function answered(file: string, answers: readonly [question: string, keys: string][]): Promise<{ code: number; err: string }> {
  const input = new PassThrough();
  const terminal = new PassThrough();
  const open = [...answers];
  let shown = "";
  let err = "";
  terminal.on("data", (chunk) => {
    shown += chunk;
    const next = open[0];
    if (next === undefined || !shown.includes(next[0])) return;
    open.shift();
    shown = "";
    setImmediate(() => input.write(next[1]));
  });
  const code = await run(["init", file], {
    out: () => undefined,
    err: (line) => {
      err += line;
    },
    readInput: () => text(input),
    input,
    isTerminal: true,
    errTerminal: terminal,
    hasColors: false,
  });
  return { code, err };
}

const enter = "\r";
const down = "\u001b[B";

describe("init", () => {
  it("asks what to limit, and writes the rules that were chosen with the numbers that were given", async () => {
    const file = path("asked.yaml");
    const { code } = await answered(file, [
      ["What is your app built with?", `${down}${enter}`],
      ["What do you want to limit?", `${down} ${enter}`],
      ["per-ip: how many requests", enter],
      ["login: how many requests", `3/0m${enter}`],
      ["No limit can be that", `\u007f\u007f\u007f\u007f3 / h${enter}`],
      ["shadow mode", `n`],
    ]);
    expect(code).toBe(0);
    expect(readFileSync(file, "utf8")).toContain(
      [
        "# Install: npm install @floodgate/koa @floodgate/rules",
        "# Load them with:",
        '#   import { rateLimit } from "@floodgate/koa";',
        '#   import { fileRules } from "@floodgate/rules";',
        `#   app.use(rateLimit({ rules: await fileRules("${file}") }));\n`,
      ].join("\n"),
    );
    expect(rulesOf(file)).toEqual([
      { name: "per-ip", key: "ip", limit: 100, window: "1m" },
      {
        name: "login",
        match: { method: "POST", path: "/login" },
        key: "ip",
        policy: { algorithm: "sliding-window-log", limit: 3, window: "1h" },
      },
    ]);
  });

  it("writes nothing if it is cancelled", async () => {
    const file = path("cancelled.yaml");
    expect(await answered(file, [["What is your app built with?", "\u0003"]])).toEqual({
      code: 1,
      err: "floodgate: nothing was written.\n",
    });
    expect(() => readFileSync(file)).toThrow("ENOENT");
  });

  it("asks nothing with --yes or --preset", async () => {
    const file = path("yes.yaml");
    const { code, out } = await floodgate(["init", file, "--yes"]);
    expect({ code, out }).toMatchObject({ code: 0, out: expect.stringContaining("yes.yaml: 1 rule, no problems\n") });
    expect(rulesOf(file)).toEqual([{ name: "per-ip", key: "ip", limit: 100, window: "1m" }]);
    const json = await floodgate(["init", path("json.yaml"), "--preset", "login", "--shadow", "--json"]);
    expect(JSON.parse(json.out)).toMatchObject({ file: path("json.yaml"), rules: [{ name: "login", mode: "shadow" }] });
  });

  it.each(presets.map(({ name }) => name))("writes valid rules for the preset %s", async (name) => {
    const file = path(`${name}.yaml`);
    expect((await floodgate(["init", file, "--preset", name])).code).toBe(0);
    expect((await floodgate(["check", file])).out).toBe(`${file}: 1 rule, no problems\n`);
  });

  it("writes rules that limitFor takes, for what is no HTTP request", async () => {
    const file = path("calls.yaml");
    const { code } = await answered(file, [
      ["What is your app built with?", down.repeat(frameworks.findIndex(({ name }) => name === "calls")) + enter],
      ["What do you want to limit?", `${down} ${enter}`],
      ["per-user: how many requests", `1/1h${enter}`],
      ["everyone: how many requests", enter],
      ["shadow mode", `n`],
    ]);
    expect(code).toBe(0);
    expect(readFileSync(file, "utf8")).toContain(
      `limitFor({ rules: await fileRules("${file}"), keys: { user: (call) => call.user }, store: memoryStore() });`,
    );
    const rules = await fileRules(file);
    const limit = limitFor<{ user: string }>({ rules, keys: { user: ({ user }) => user }, store: memoryStore() });
    expect([await limit.check({ user: "a" }), await limit.check({ user: "a" })]).toMatchObject([{ allowed: true }, { allowed: false }]);
    limit.close();
    rules.close();
  });

  it.each(frameworks.map((framework) => [framework.name, framework.packages] as const))("knows the packages for %s", (_, packages) => {
    const names = packages.split(" ").map((name) => name.replace("@floodgate/", ""));
    expect(readdirSync(join(__dirname, "../.."))).toEqual(expect.arrayContaining(names));
  });

  it.each([[], ["--force"]])("names a file for a directory, with %o too", async (...options) => {
    expect(await floodgate(["init", path("."), "--yes", ...options])).toMatchObject({
      code: 64,
      err: expect.stringContaining("limits.yaml"),
    });
  });

  it("overwrites a file only with --force", async () => {
    const file = write("there.yaml", "mine");
    expect(await floodgate(["init", file, "--yes"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("Write --force to overwrite it"),
    });
    expect(readFileSync(file, "utf8")).toBe("mine");
    expect((await floodgate(["init", file, "--yes", "--force"])).code).toBe(0);
    expect(rulesOf(file)).toHaveLength(1);
  });

  it.each([
    [["init", path("a.yaml")], "this is not a terminal. Write --yes, or --preset per-ip,login."],
    [["init", path("a.yaml"), "--preset", "per-ipp"], 'There is no preset "per-ipp". The presets are per-ip, login'],
    [["init", path("a.yaml"), "--framework", "rails", "--yes"], "argument 'rails' is invalid. Allowed choices are express, koa"],
    [["init", path("a.yaml"), "--framework", "calls", "--preset", "login"], "With --framework calls write --preset per-user,everyone."],
    [["init", "-", "--yes"], "init writes a file. Name it: floodgate init limits.yaml."],
    [["init", "a\nb.yaml", "--yes"], "the file's name has control characters."],
    [["init", path("a.yaml"), "--shadow"], "--shadow is for --preset or --yes"],
  ])("refuses %j", async (args, advice) => {
    expect(await floodgate(args)).toMatchObject({ code: 64, err: expect.stringContaining(advice) });
  });

  it("says that the file cannot be written", async () => {
    const file = path("none/a.yaml");
    const err = `floodgate: ${file} cannot be written: ${path("none")} does not exist.\n`;
    expect(await floodgate(["init", file, "--yes"])).toMatchObject({ code: 74, err });
  });
});
