import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "./files.js";
import { entries, folders, install, pack, root, run, tarballsIn } from "./packed.js";

// What a user gets: every package is packed as it would be published, installed in a fresh project, and used in each way there is. See also
// test/tarballs.long.test.ts.

const temp = temporaryFolder("packages");
const project = join(temp, "project");
const tarballs = tarballsIn(temp);
const names = Object.keys(tarballs);

beforeAll(async () => {
  await pack(temp);
  mkdirSync(project);
  write("package.json", {
    private: true,
    dependencies: { ...tarballs, ...beside },
    // What the packages need of each other are the tarballs too.
    overrides: Object.fromEntries(names.map((name) => [name, `$${name}`])),
  });
  await install(project);
}, 360_000);

/** What apps have beside our packages. */
const beside = {
  express: "^5.0.0",
  fastify: "^5.0.0",
  hono: "^4.0.0",
  "@hono/node-server": "^2.0.0",
  ioredis: "^6.0.0",
  koa: "^3.0.0",
  // Nest 12 is ES modules only, which Jest and types of CommonJS cannot load. The tests of the package use it.
  "@nestjs/common": "^11.0.0",
  "@nestjs/core": "^11.0.0",
  pg: "^8.0.0",
  redis: "^6.0.0",
  "@opentelemetry/api": "^1.9.0",
  "prom-client": "^15.1.0",
  supertest: "^7.0.0",
  "@types/express": "^5.0.0",
  "@types/koa": "^3.0.0",
  "@types/pg": "^8.0.0",
  // That of @types/koa: the next one has types of its own, other ones.
  "content-disposition": "^1.0.0",
  "@types/node": "^20.19.0",
};

describe("the installed packages", { timeout: 30_000 }, () => {
  it("are the tarballs, once each", () => {
    const { packages } = JSON.parse(readFileSync(join(project, "package-lock.json"), "utf8"));
    const ours = Object.entries<{ resolved: string }>(packages).filter(([place]) => place.includes("node_modules/@floodgate/"));
    expect(ours.map(([place]) => place).sort()).toEqual(names.map((name) => `node_modules/${name}`).sort());
    for (const [place, { resolved }] of ours) expect(resolved, place).toMatch(/^file:/);
  });
});

describe("the one line", { timeout: 60_000 }, () => {
  const use = `
    // The clock stands still, so that no window ends between two requests.
    const nowMs = Date.now();
    Date.now = () => nowMs;

    const app = express();
    app.use(rateLimit({ limit: 100, window: "1m" }));
    app.get("/", (req, res) => res.send("hello"));

    const low = express();
    low.use(rateLimit({ limit: 2, window: "1m" }));
    low.get("/", (req, res) => res.send("hello"));`;

  const viaFetch = `${use}
    async function ask(app) {
      const server = app.listen(0);
      await new Promise((resolve) => server.once("listening", resolve));
      const answers = [];
      for (let i = 0; i < 3; i++) {
        const { status, headers } = await fetch("http://127.0.0.1:" + server.address().port);
        answers.push({ status, ...Object.fromEntries(headers) });
      }
      server.close();
      return answers;
    }
    Promise.all([ask(app), ask(low)]).then((answers) => console.log(JSON.stringify(answers)));`;

  const check = (output: string) => {
    const [high, low] = JSON.parse(output);
    expect(high.map((answer: { status: number }) => answer.status)).toEqual([200, 200, 200]);
    expect(high[0]).toMatchObject({
      ratelimit: expect.stringMatching(/r=99\b/),
      "ratelimit-policy": expect.stringMatching(/q=100;w=60\b/),
    });
    expect(low.map((answer: { status: number }) => answer.status)).toEqual([200, 200, 429]);
    expect(low[2]).toMatchObject({ ratelimit: expect.stringMatching(/r=0\b/), "retry-after": expect.stringMatching(/^[1-9]\d*$/) });
  };

  it("works by import", async () => {
    const imports = `import { rateLimit } from "@floodgate/express";\nimport express from "express";`;
    check(await node("one-line.mjs", `${imports}${viaFetch}`));
  });

  it("works by require", async () => {
    const requires = `const { rateLimit } = require("@floodgate/express");\nconst express = require("express");`;
    check(await node("one-line.cjs", `${requires}${viaFetch}`));
  });

  it("works under Jest, and so does each entry point", async () => {
    write(
      "one-line.test.js",
      `const { rateLimit } = require("@floodgate/express");
      const express = require("express");
      const request = require("supertest");
      ${use}

      test("limits", async () => {
        const { headers } = await request(app).get("/").expect(200);
        expect(headers.ratelimit).toMatch(/r=99\\b/);
        expect(headers["ratelimit-policy"]).toMatch(/q=100;w=60\\b/);
        await request(low).get("/").expect(200);
        await request(low).get("/").expect(200);
        await request(low).get("/").expect(429).expect("RateLimit", /r=0\\b/).expect("Retry-After", /^[1-9]\\d*$/);
      });

      test.each(${JSON.stringify(entries)})("%s loads", (name) => {
        expect(Object.keys(require(name))).not.toEqual([]);
      });`,
    );
    await run(bin("jest"), ["--ci"], project);
  });

  it("works with the globals that jsdom has in Jest, whose timers are numbers, and with frozen errors", async () => {
    // The gateway is a process of its own, and its server needs more.
    const loaded = entries.filter((name) => name !== "@floodgate/gateway");
    await node(
      "jsdom.cjs",
      `const assert = require("node:assert");
      const { writeFileSync } = require("node:fs");
      new Headers(); // Node's own needs them when it is loaded
      for (const name of ["TextEncoder", "TextDecoder", "setImmediate", "clearImmediate", "structuredClone"]) delete globalThis[name];
      for (const name of ["setTimeout", "setInterval"]) {
        const ofNode = globalThis[name];
        globalThis[name] = (...call) => Number(ofNode(...call));
      }
      for (const name of ${JSON.stringify(loaded)}) assert.notDeepEqual(Object.keys(require(name)), []);

      Object.freeze(Error.prototype);
      const { LimitedError, rateLimit } = require("@floodgate/express");
      assert.equal(new LimitedError({}).name, "LimitedError");
      assert.throws(() => rateLimit({ limit: -1, window: "1m" }), { name: "FloodgateError", code: "FLOODGATE_INVALID_OPTION" });

      const page = require("@floodgate/dashboard/express").dashboard();
      writeFileSync("jsdom.yaml", "rules: [{ name: a, limit: 1, window: 1m }]");
      require("@floodgate/rules").fileRules("jsdom.yaml").then((rules) => {
        rateLimit({ rules }).close();
        page.close();
        return rules.close();
      });`,
    );
  });
});

describe("the command line alone", { timeout: 60_000 }, () => {
  const alone = join(temp, "alone");
  const floodgate = (...args: string[]) => run(process.execPath, ["node_modules/@floodgate/cli/dist/main.js", ...args], alone);

  beforeAll(async () => {
    mkdirSync(alone);
    const dependencies = { "@floodgate/cli": tarballs["@floodgate/cli"] };
    const overrides = { ...tarballs, "@floodgate/cli": "$@floodgate/cli" };
    writeFileSync(join(alone, "package.json"), JSON.stringify({ private: true, dependencies, overrides }));
    await install(alone);
  }, 180_000);

  it("brings no parser, no server and no exporter", () => {
    const { packages } = JSON.parse(readFileSync(join(alone, "package-lock.json"), "utf8"));
    const brought = Object.keys(packages).map((place) => place.replace(/^.*node_modules\//, ""));
    const heavy = ["@babel/parser", "@grpc/grpc-js", "@floodgate/gateway", "hono", "httpxy", "pino", "prom-client", "protobufjs"];
    expect(brought.filter((name) => heavy.includes(name))).toEqual([]);
    expect(brought.length).toBeLessThan(40);
  });

  it("shows its help, and says what serve, gateway and migrate need", async () => {
    expect(await floodgate("--help")).toContain("serve");
    expect(await floodgate("serve", "--help")).toContain("npx -p @floodgate/cli -p @floodgate/gateway floodgate serve");
    await expect(floodgate("gateway", "--rules", "limits.yaml")).rejects.toThrow("gateway needs the package @floodgate/gateway.");
    await expect(floodgate("migrate", "koa-ratelimit", "a.js")).rejects.toThrow("Run npx @floodgate/migrate koa-ratelimit a.js");
  });
});

describe("one state, whichever way it is loaded", { timeout: 30_000 }, () => {
  it("is the same function, class and object by import and by require", async () => {
    await node(
      "identity.mjs",
      `import assert from "node:assert/strict";
      import { createRequire } from "node:module";
      const require = createRequire(import.meta.url);
      for (const name of ${JSON.stringify(entries)}) {
        const imported = await import(name);
        const required = require(name);
        assert.notDeepEqual(Object.keys(required), []);
        for (const word of Object.keys(required)) assert.equal(imported[word], required[word], name + " " + word);
      }`,
    );
  });

  it("takes what the other way made, and knows its names", async () => {
    await node(
      "one-state.mjs",
      `import assert from "node:assert/strict";
      import { createRequire } from "node:module";
      import { createLimiter, fixedWindow, FloodgateError } from "@floodgate/core";
      import { rateLimit } from "@floodgate/express";
      const require = createRequire(import.meta.url);
      const core = require("@floodgate/core");

      const store = require("@floodgate/store-memory").memoryStore();
      const policy = core.fixedWindow({ limit: 2, window: "1d" });
      const here = createLimiter({ name: "api", policy, store });
      const there = core.createLimiter({ name: "api", policy: fixedWindow({ limit: 2, window: "1d" }), store });
      assert.equal(here.consume("ann").remaining, 1);
      assert.equal(there.consume("ann").remaining, 0);
      assert.equal(core.consumeAll([{ limiter: here, key: "ann" }]).allowed, false);

      const taken = (error) => error instanceof FloodgateError && error instanceof core.FloodgateError && error.code === "FLOODGATE_NAME_TAKEN";
      const other = { name: "api", policy: fixedWindow({ limit: 3, window: "1d" }), store };
      assert.throws(() => createLimiter(other), taken);
      assert.throws(() => core.createLimiter(other), taken);
      assert.throws(() => rateLimit(other), taken);
      assert.throws(() => require("@floodgate/express").rateLimit(other), taken);`,
    );
  });
});

describe("types", { timeout: 180_000 }, () => {
  // Their meaning is checked by test/consumers.long.test.ts, with each compiler.
  const consumer = entries.map((name, index) => `import * as all${index} from "${name}";\nexport { all${index} };`).join("\n");

  beforeAll(async () => {
    for (const extension of ["ts", "mts", "cts"]) write(`consumer.${extension}`, consumer);
    for (const folder of folders) write(`readme-${folder}.mts`, example(folder));
    // Everything that a README imports from us, in all its examples.
    const imported = [...folders.map(readme), readFileSync(join(root, "README.md"), "utf8")].flatMap(ownImports);
    write("readme-imports.mts", imported.map(({ name, from }, index) => `export { ${name} as name${index} } from "${from}";`).join("\n"));
  }, 180_000);

  it.each([
    ["node16", "node16"],
    ["nodenext", "nodenext"],
    ["esnext", "bundler"],
  ])("resolve with module %s and moduleResolution %s, in the consumers and the READMEs", async (module, moduleResolution) => {
    const checked = { strict: true, skipLibCheck: false, skipDefaultLibCheck: true };
    const compilerOptions = { module, moduleResolution, target: "es2022", noEmit: true, experimentalDecorators: true, ...checked };
    write(`tsconfig.${moduleResolution}.json`, { compilerOptions, include: ["consumer.*", "readme-*"] });
    await run(bin("tsc"), ["-p", `tsconfig.${moduleResolution}.json`], project);
  });
});

describe("the READMEs", { timeout: 30_000 }, () => {
  it.each(["core", "store-memory"])("packages/%s says what its example prints", async (folder) => {
    const code = example(folder);
    const printed = (await node(`readme-${folder}.mjs`, code)).trim().split("\n");
    expect(printed).toEqual([...code.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].map(([, said]) => said));
  });
});

describe("an adapter's README", () => {
  it.each(["express", "koa", "hono"])("packages/%s imports nothing of ours that its one npm install does not bring", (folder) => {
    expect(readme(folder)).toContain(`npm install @floodgate/${folder}\n`);
    expect(new Set(ownImports(readme(folder)).map(({ from }) => from))).toEqual(new Set([`@floodgate/${folder}`]));
  });
});

/** The README of a package, as it is installed. */
function readme(folder: string): string {
  return readFileSync(join(project, "node_modules", "@floodgate", folder, "README.md"), "utf8");
}

/** The first example of a package's README. */
function example(folder: string): string {
  return /```[jt]s\n(.*?)```/s.exec(readme(folder))?.[1] ?? "";
}

/** What a text imports from our packages. */
function ownImports(text: string): { name: string; from: string }[] {
  return [...text.matchAll(/^import (?:type )?\{([^}]*)\} from "(@floodgate\/[^"]+)"/gm)].flatMap(([, names = "", from = ""]) =>
    names.split(",").map((name) => ({ name: name.replace("type ", "").trim(), from })),
  );
}

function write(file: string, content: unknown): void {
  writeFileSync(join(project, file), typeof content === "string" ? content : JSON.stringify(content, null, 2));
}

/** Runs a script in the project. Answers what it printed. */
function node(file: string, code: string): Promise<string> {
  write(file, code);
  return run(process.execPath, [file], project);
}

function bin(tool: string): string {
  return join(root, "node_modules", ".bin", tool);
}
