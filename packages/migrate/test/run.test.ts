import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { run } from "../src/run.js";

const folder = mkdtempSync(join(tmpdir(), "floodgate-migrate-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, text: string | Buffer): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}

async function floodgateMigrate(...args: string[]) {
  let out = "";
  let err = "";
  const code = await run(args, {
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    hasColors: false,
  });
  return { code, out, err };
}

const simple = 'import rateLimit from "express-rate-limit";\n\nexport const limit = rateLimit({ windowMs: 60_000, max: 5 });\n';

it("prints each call before and after, and changes nothing", async () => {
  const file = write("app.ts", simple);
  expect(await floodgateMigrate("express-rate-limit", file)).toEqual({
    code: 0,
    err: "",
    out: `${file}:3
- rateLimit({ windowMs: 60_000, max: 5 })
+ rateLimit({ window: "1m", limit: 5, headers: "legacy" })

1 of 1 calls can be rewritten. Nothing is changed yet: add --write.
Then: npm install @floodgate/express
What changes for clients: node_modules/@floodgate/core/docs/migrating/from-express-rate-limit.md
`,
  });
  expect(readFileSync(file, "utf8")).toBe(simple);
});

it("takes globs and several files, passes those by that use another library, and exits with 1 if anything is left to do", async () => {
  const a = write("src/a.ts", simple);
  const b = write("src/deep/[id].ts", simple.replace("max: 5", "max: 5, ...more"));
  write("src/other.ts", "{{ a template, which is no code }}\n");
  const dependency = write("src/node_modules/x/index.ts", simple);
  const { code, out, err } = await floodgateMigrate("express-rate-limit", join(folder, "src/**/*.ts"), b, "--write");
  expect({ code, err }).toEqual({ code: 1, err: "floodgate-migrate: 1 thing to do by hand.\n" });
  expect(out).toContain(`${b}:3:32: Options that are spread into this object are not rewritten.`);
  expect(out).toContain("1 of 2 calls are rewritten.");
  expect(readFileSync(a, "utf8")).toContain("@floodgate/express");
  expect(readFileSync(b, "utf8")).toBe(simple.replace("max: 5", "max: 5, ...more"));
  expect(readFileSync(dependency, "utf8")).toBe(simple);
});

it("says that the rest of the app ignores what is rewritten, while something is left to do", async () => {
  const plugin = write("fastify/plugin.ts", 'import limit from "@fastify/rate-limit";\napp.register(limit, { max: 100, ban: 3 });\n');
  const route = write("fastify/route.ts", 'app.post("/login", { config: { rateLimit: { max: 5, timeWindow: "1 minute" } } }, login);\n');
  const note = "1 thing to do by hand. Do this before the app runs: until then, @fastify/rate-limit ignores the limits that are rewritten.";
  expect((await floodgateMigrate("@fastify/rate-limit", plugin, route)).err).toBe(`floodgate-migrate: ${note}\n`);
  expect((await floodgateMigrate("@fastify/rate-limit", plugin)).err).toBe("floodgate-migrate: 1 thing to do by hand.\n");
});

it("prints JSON", async () => {
  const file = write("json.ts", simple);
  const { out } = await floodgateMigrate("express-rate-limit", file, "--json");
  expect(JSON.parse(out)).toMatchObject([
    { file, written: false, calls: [{ line: 3, after: expect.stringContaining("1m") }], packages: ["@floodgate/express"] },
  ]);
});

it("changes no file in another encoding", async () => {
  const bytes = Buffer.from(`${simple}// caf\u00e9\n`, "latin1");
  const file = write("latin1.js", bytes);
  expect(await floodgateMigrate("express-rate-limit", file, "--write")).toMatchObject({
    code: 1,
    err: expect.stringContaining("latin1.js is not UTF-8 text"),
  });
  expect(readFileSync(file)).toEqual(bytes);
});

it("prints no control characters of a file", async () => {
  const file = write("control.ts", simple.replace("max: 5", 'max: 5, message: "\u001b[2J\u0007"'));
  expect((await floodgateMigrate("express-rate-limit", file)).out).toContain('body: ""');
});

it.each([
  [["express-rate-limt", "app.js"], 64, "it does not know express-rate-limt. It knows express-rate-limit, koa-ratelimit"],
  [["constructor", "app.js"], 64, "it does not know constructor."],
  [["express-rate-limit"], 64, "no file is given."],
  [["express-rate-limit", "missing.js"], 64, "missing.js does not exist."],
  [["express-rate-limit", "missing/**/*.js"], 64, "matches no file."],
  [["express-rate-limit", `{${"a".repeat(300)},b}.js`], 64, "matches no file."],
  [["express-rate-limit", `${folder}/`], 64, `${folder}/ is a directory. Write '${folder}/**/*.ts' in quotes.`],
  [["express-rate-limit", write("deep.js", `${simple}x${".y()".repeat(100_000)};\n`)], 1, "deep.js: its code is nested too deeply."],
  [["express-rate-limit", "--wriet", "app.js"], 64, "Unknown option '--wriet'"],
  [["express-rate-limit", write("other.js", "let a = 1;\n")], 1, "other.js does not import express-rate-limit."],
  [["express-rate-limit", write("unused.js", 'import rateLimit from "express-rate-limit";\n')], 1, "1 thing to do by hand."],
  [["express-rate-limit", write("broken.js", `${simple}let a =\n= 1;\n`)], 1, "broken.js:5:1: this is not JavaScript that can be read"],
])("%o exits with %i", async (args, exitCode, message) => {
  const ended = await floodgateMigrate(...args);
  expect(ended.code).toBe(exitCode);
  expect(ended.err).toContain(message);
});
