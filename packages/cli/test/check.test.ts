import { describe, expect, it, test } from "vitest";
import { floodgate } from "./command.js";
import { limits, tempFolder } from "./files.js";

const { write, path } = tempFolder();
const valid = write("limits.yaml", limits);
const invalid = write("bad.yaml", limits.replace("limit: 1,", "limt: 1,").replace("window: 15m", "window: 15 minutes"));

test("a file without problems", async () => {
  expect(await floodgate(["check", valid])).toEqual({ code: 0, out: `${valid}: 3 rules, no problems\n`, err: "" });
});

test("standard input", async () => {
  expect(await floodgate(["check", "-"], limits)).toEqual({ code: 0, out: "stdin: 3 rules, no problems\n", err: "" });
});

describe("a file with problems", () => {
  it("prints each problem with its position, the line and a caret", async () => {
    const { code, out, err } = await floodgate(["check", invalid]);
    expect(code).toBe(1);
    expect(err).toBe(`floodgate: 3 problems in ${invalid}.\n`);
    const lines = out.split("\n");
    const at = lines.findIndex((line) => line.startsWith(`${invalid}:5:40: `));
    expect(lines[at]).toContain("Did you mean `limit`?");
    expect(lines.slice(at + 1, at + 4)).toEqual([
      "  5 |     policy: { algorithm: fixed-window, limt: 1, window: 365d }",
      "    |                                        ^",
      "",
    ]);
    expect(out).toContain(`${invalid}:15:13: `);
    expect(out).toContain("  15 |     window: 15 minutes\n     |             ^\n");
  });

  it("prints the problems as JSON with --json", async () => {
    const { code, out } = await floodgate(["check", invalid, "--json"]);
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      file: invalid,
      rules: null,
      problems: [{ path: ["rules", 0, "policy", "limit"] }, { path: ["rules", 0, "policy", "limt"] }, { line: 15, column: 13 }],
    });
  });

  it("shows part of a long line, without control characters", async () => {
    const long = `{"rules": [{"name": "${"a".repeat(100)}", "\u001b[31mlimit": 1, "window": "1m", "mode": "${"b".repeat(5000)}"}]}`;
    const { code, out } = await floodgate(["check", "-"], long);
    expect(code).toBe(1);
    expect(out).not.toContain("\u001b");
    const lines = out.split("\n");
    const mark = lines.findIndex((line) => line.includes("^"));
    const above = lines[mark - 1] as string;
    expect(above.length).toBeLessThan(140);
    expect(above.slice(lines[mark]?.indexOf("^"))).toMatch(/^\ufffd\[31mlimit"/);
  });
});

describe("--keys and --costs", () => {
  const rules = "rules:\n  - { name: a, limit: 1, window: 1m, key: usr, cost: tokens }\n";

  it.each([
    [["--keys", "usr,tenant", "--costs", "tokens"], 0, ""],
    [["--keys", "user, tenant"], 1, "stdin:2:43: rules[0]: `key` must be"],
    [["--keys", "user, tenant"], 1, 'Did you mean "user"?'],
    [["--costs", "token"], 1, 'Did you mean "token"?'],
    [[], 0, ""],
  ])("%o", async (args, code, text) => {
    const ended = await floodgate(["check", "-", ...args], rules);
    expect(ended.code).toBe(code);
    expect(ended.out).toContain(text);
  });
});

describe("invalid arguments exit with 64 and say what to write", () => {
  it.each([
    [["check"], "missing required argument 'file'"],
    [["chek", valid], "Did you mean check?"],
    [["check", valid, "--jso"], "Did you mean --json?"],
    [["check", path("none.yaml")], "does not exist"],
    [["check", path("")], "cannot be read"],
    [["check", ""], "the name of a file is empty"],
    [["check", valid, "--ip", "203.0.113.9"], '--ip describes a request, but --request is missing. Add --request "POST /posts"'],
    [["check", valid, "--key", "user=42"], "--key describes a request"],
    [["check", valid, "--header", "x-app: web", "--json"], "--header describes a request"],
    [["check", valid, "--route", "/posts"], "--route describes a request"],
    [["check", valid, "--plan", "pro", "--keys", "user"], "--plan describes a request"],
    [["check", valid, "--request", "posts"], '--request "POST /posts?page=2"'],
    [["check", valid, "--request", "/posts", "--key", "usr=42"], 'Did you mean "user"?'],
    [["check", valid, "--request", "/posts", "--key", "42"], "--key user=42"],
    [["check", valid, "--request", "/posts", "--header", "x-api-key"], '--header "x-api-key: abc"'],
    [["check", valid, "--request", "/posts", "--ip", "nonsense"], '"nonsense" is not an IP address'],
    [["check", valid, "--ipv6-prefix", "129"], "1 to 128"],
    [["push", valid, "--if-version", "abc"], "It must be a version number, as push and pull print it."],
    [["pull", "--rules-key", ""], "It must be the name of a Redis key."],
    [["status"], "required option '--rule <name>' not specified"],
    [["status", "--nope"], "unknown option '--nope'"],
    [["status", "--rule", "posts", "--rules", valid], "Did you mean --file?"],
    [["simulate", "a.log", "--file", valid], "Did you mean --rules?"],
    [["simulate", "a.log", "--policy", "5/1m"], "Did you mean --compare?"],
    [["top", "--host", "127.0.0.1"], "Did you mean --redis?"],
    [["serve", "--rules", valid, "--port=80"], "Did you mean --listen?"],
    [["status", "--rules-ke", "app:rules"], "Did you mean --rules-key?"],
    [["block", "--rule", "posts"], "required option '--for <duration>' not specified"],
    [["status", "--rule", "posts", "--key", "42", "--prefix", ""], "1 to 200 characters without braces"],
    [["reset", "--rule", "posts", "--key", "42", "--prefix", "{x}"], "1 to 200 characters without braces"],
    [[], "Usage: floodgate"],
  ])("%o", async (args, text) => {
    const { code, out, err } = await floodgate(args);
    expect({ code, out }).toEqual({ code: 64, out: "" });
    expect(err).toContain(text);
    expect(err).not.toMatch(/^\s+at /m);
  });
});

test.each(["check", "push", "pull", "status", "reset"])("%s --help shows examples", async (command) => {
  const { code, out } = await floodgate([command, "--help"]);
  expect(code).toBe(0);
  expect(out).toMatch(new RegExp(`^Usage: floodgate ${command}`));
  expect(out).toMatch(new RegExp(`Examples:\n {2}\\$ floodgate ${command}`));
});

test("--debug prints the stack of an error, before or after the command", async () => {
  const missing = path("none.yaml");
  expect((await floodgate(["--debug", "check", missing])).err).toMatch(/^\s+at .*\ncaused by: Error: ENOENT/ms);
  expect((await floodgate(["check", missing, "--debug"])).err).toMatch(/^\s+at /m);
});
