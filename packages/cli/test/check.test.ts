import { execFileSync } from "node:child_process";
import { describe, expect, it, test } from "vitest";
import { floodgate } from "./command.js";
import { limits, tempFolder } from "./files.js";

const { write, path } = tempFolder();
const good = write("limits.yaml", limits);
const bad = write("bad.yaml", limits.replace("limit: 1,", "limt: 1,").replace("window: 15m", "window: 15 minutes"));

test("a file without problems", async () => {
  expect(await floodgate(["check", good])).toEqual({ code: 0, out: `${good}: 3 rules, no problems\n`, err: "" });
});

test("standard input", async () => {
  expect(await floodgate(["check", "-"], limits)).toEqual({ code: 0, out: "stdin: 3 rules, no problems\n", err: "" });
});

describe("a file with problems", () => {
  it("is shown as a compiler shows them: the place, what is wrong, the line, a caret", async () => {
    const { code, out, err } = await floodgate(["check", bad]);
    expect(code).toBe(1);
    expect(err).toBe(`floodgate: 3 problems in ${bad}.\n`);
    const lines = out.split("\n");
    const at = lines.findIndex((line) => line.startsWith(`${bad}:5:40: `));
    expect(lines[at]).toContain("Did you mean `limit`?");
    expect(lines.slice(at + 1, at + 4)).toEqual([
      "  5 |     policy: { algorithm: fixed-window, limt: 1, window: 1h }",
      "    |                                        ^",
      "",
    ]);
    expect(out).toContain(`${bad}:15:13: `);
    expect(out).toContain("  15 |     window: 15 minutes\n     |             ^\n");
  });

  it("is shown as JSON to programs", async () => {
    const { code, out } = await floodgate(["check", bad, "--json"]);
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      file: bad,
      rules: null,
      problems: [{ path: ["rules", 0, "policy", "limit"] }, { path: ["rules", 0, "policy", "limt"] }, { line: 15, column: 13 }],
    });
  });

  it("keeps a terminal from obeying it, and shows the neighbourhood of a place in a long line", async () => {
    const long = `{"rules": [{"name": "${"a".repeat(100)}", "\u001b[31mlimit": 1, "window": "1m", "mode": "${"b".repeat(5000)}"}]}`;
    const { code, out } = await floodgate(["check", "-"], long);
    expect(code).toBe(1);
    expect(out).not.toContain("\u001b");
    const lines = out.split("\n");
    for (const [i, line] of lines.entries()) {
      if (!line.includes("^")) continue;
      const above = lines[i - 1] as string;
      expect(above.length).toBeLessThan(140);
      expect(above.slice(line.indexOf("^"))).toMatch(/^"/);
    }
  });
});

describe("names of the app", () => {
  const rules = "rules:\n  - { name: a, limit: 1, window: 1m, key: usr, cost: tokens }\n";

  it.each([
    [["--keys", "usr,tenant", "--costs", "tokens"], 0, ""],
    [["--keys", "user, tenant"], 1, "stdin:2:43: rules[0]: `key` must be"],
    [["--keys", "user, tenant"], 1, 'Did you mean "user"?'],
    [["--costs", "token"], 1, 'Did you mean "token"?'],
    [[], 0, ""],
  ])("%o", async (args, code, said) => {
    const ended = await floodgate(["check", "-", ...args], rules);
    expect(ended.code).toBe(code);
    expect(ended.out).toContain(said);
  });
});

describe("mistakes of usage end with 64 and what to write", () => {
  it.each([
    [["check"], "missing required argument 'file'"],
    [["chek", good], "Did you mean check?"],
    [["check", good, "--jso"], "Did you mean --json?"],
    [["check", path("none.yaml")], "there is no file"],
    [["check", path("")], "cannot be read"],
    [["check", good, "--ip", "203.0.113.9"], '--ip tells of a request, and there is none. Write --request "POST /posts"'],
    [["check", good, "--key", "user=42"], "--key tells of a request"],
    [["check", good, "--header", "x-app: web", "--json"], "--header tells of a request"],
    [["check", good, "--route", "/posts"], "--route tells of a request"],
    [["check", good, "--plan", "pro", "--keys", "user"], "--plan tells of a request"],
    [["check", good, "--request", "posts"], '--request "POST /posts?page=2"'],
    [["check", good, "--request", "/posts", "--key", "usr=42"], 'Did you mean "user"?'],
    [["check", good, "--request", "/posts", "--key", "42"], "--key user=42"],
    [["check", good, "--request", "/posts", "--header", "x-api-key"], '--header "x-api-key: abc"'],
    [["check", good, "--request", "/posts", "--ip", "nonsense"], '"nonsense" is no address'],
    [["check", good, "--ipv6-prefix", "129"], "1 to 128"],
    [["push", good, "--if-version", "abc"], "It is a number, as push and pull tell it."],
    [["pull", "--rules-key", ""], "It is the name of a key in Redis."],
    [["status", "--rule", "posts", "--key", "42", "--prefix", ""], "1 to 200 characters, and no braces"],
    [["reset", "--rule", "posts", "--key", "42", "--prefix", "{x}"], "1 to 200 characters, and no braces"],
    [[], "Usage: floodgate"],
  ])("%o", async (args, said) => {
    const { code, out, err } = await floodgate(args);
    expect({ code, out }).toEqual({ code: 64, out: "" });
    expect(err).toContain(said);
    expect(err).not.toMatch(/^\s+at /m);
  });
});

test("a pipe is not waited for", async () => {
  const pipe = path("pipe");
  execFileSync("mkfifo", [pipe]);
  expect(await floodgate(["check", pipe])).toEqual({
    code: 64,
    out: "",
    err: `floodgate: ${pipe} cannot be read: it is no regular file. Write - for standard input.\n`,
  });
});

test.each(["check", "push", "pull", "status", "reset"])("%s --help explains it by examples", async (command) => {
  const { code, out } = await floodgate([command, "--help"]);
  expect(code).toBe(0);
  expect(out).toMatch(new RegExp(`^Usage: floodgate ${command}`));
  expect(out).toMatch(new RegExp(`Examples:\n {2}\\$ floodgate ${command}`));
});

test("--debug shows where an error comes from, wherever it stands", async () => {
  const missing = path("none.yaml");
  expect((await floodgate(["--debug", "check", missing])).err).toMatch(/^\s+at .*\ncaused by: Error: ENOENT/ms);
  expect((await floodgate(["check", missing, "--debug"])).err).toMatch(/^\s+at /m);
});
