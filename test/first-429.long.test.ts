import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { sparePort } from "../tools/test-servers/src/index.js";
import { temporaryFolder } from "./files.js";
import { install, pack, root, run } from "./packed.js";
import { takesConnections } from "./programs.js";

// From an empty folder to the first 429, in strict TypeScript: with the first example of each adapter's README, and with the lines that
// `floodgate init` writes.

const temp = temporaryFolder("first-429");
let tarballs: Record<string, string>;

interface App {
  /** What it installs beside the adapter. */
  readonly installs: readonly string[];
  /** What stands before and after the lines that `floodgate init` writes. */
  readonly before: string;
  readonly after: string;
  /** Whether it exports a handler, which a server serves. */
  readonly isServed?: true;
}

const adapters: Record<string, App> = {
  express: {
    installs: ["express@5", "@types/express@5"],
    before: `import express from "express";
      declare global { namespace Express { interface Request { user?: { id: string } } } }
      const app = express();`,
    after: 'app.get("/", (_req, res) => void res.send("hello")); app.listen(3000);',
  },
  koa: {
    installs: ["koa@3", "@types/koa@3"],
    before: 'import Koa from "koa"; const app = new Koa();',
    after: 'app.use((ctx) => { ctx.body = "hello"; }); app.listen(3000);',
  },
  hono: {
    installs: ["hono@4", "srvx@1"],
    before: 'import { Hono } from "hono"; const app = new Hono();',
    after: 'app.get("/", (c) => c.text("hello")); export default app;',
    isServed: true,
  },
  fastify: {
    installs: ["fastify@5"],
    before: `import Fastify from "fastify";
      declare module "fastify" { interface FastifyRequest { user?: { id: string } } }
      const app = Fastify();`,
    after: 'app.get("/", async () => "hello"); await app.listen({ port: 3000 });',
  },
  nestjs: {
    installs: ["@nestjs/common@11", "@nestjs/core@11", "@nestjs/platform-express@11", "reflect-metadata@0.2", "rxjs@7"],
    before: `import "reflect-metadata"; import { Controller, Get } from "@nestjs/common"; import { NestFactory } from "@nestjs/core";
      @Controller() class Hello { @Get() hello(): string { return "hello"; } }`,
    after: `@Module({ imports: [LimitsModule], controllers: [Hello] }) class AppModule {}
      NestFactory.create(AppModule).then((app) => app.listen(3000));`,
  },
  node: {
    installs: [],
    before: `import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
      const server = createServer(); const serve = (_req: IncomingMessage, res: ServerResponse) => void res.end("hello");`,
    after: "server.listen(3000);",
  },
  fetch: { installs: ["srvx@1"], before: 'const handler = (_request: Request) => new Response("hello");', after: "", isServed: true },
};

beforeAll(async () => {
  tarballs = await pack(temp, ["core", "store-memory", "rules", ...Object.keys(adapters)]);
}, 180_000);

const compilerOptions = {
  ...{ strict: true, module: "nodenext", target: "es2023", types: ["node"], rootDir: ".", outDir: "built" },
  // Nest's own starter has these.
  ...{ experimentalDecorators: true, emitDecoratorMetadata: true },
};

describe.each(Object.entries(adapters))("an app of packages/%s", { timeout: 300_000 }, (name, { installs, before, after, isServed }) => {
  const cwd = join(temp, name);

  beforeAll(async () => {
    mkdirSync(cwd);
    // npm refuses to override what the app itself installs.
    const { [`@floodgate/${name}`]: own, "@floodgate/rules": rules, ...overrides } = tarballs;
    // Nest's own starter is CommonJS.
    const type = name === "nestjs" ? "commonjs" : "module";
    writeFileSync(join(cwd, "package.json"), JSON.stringify({ type, overrides }));
    await install(cwd, `@floodgate/${name}@${own}`, `@floodgate/rules@${rules}`, "@types/node@20", ...installs);
  }, 300_000);

  it("limits requests as the README's first example says", async () => {
    const readme = readFileSync(join(root, "packages", name, "README.md"), "utf8");
    expect(readme).toContain(`npm install @floodgate/${name}\n`);
    await expectFirst429("readme.ts", /```[jt]s\n(.*?)```/s.exec(readme)?.[1] ?? "");
  });

  it("limits requests by the lines that floodgate init writes", async () => {
    const cli = join(root, "packages/cli/dist/main.js");
    await run(process.execPath, [cli, "init", "limits.yaml", "--preset", "per-ip,per-user", "--framework", name], cwd);
    const rules = readFileSync(join(cwd, "limits.yaml"), "utf8");
    writeFileSync(join(cwd, "limits.yaml"), rules.replace("window: 1m", "window: 365d"));
    const lines = rules.matchAll(/^# {3}(.*)$/gm);
    await expectFirst429("init.ts", `${before}\n${[...lines].map(([, line]) => line).join("\n")}\n${after}\n`);
  });

  /** Checks an app's types, starts it, and sends requests until one is rejected. */
  async function expectFirst429(file: string, code: string): Promise<void> {
    const PORT = `${await sparePort()}`;
    // No request leaves such a window, however long the test takes.
    writeFileSync(join(cwd, file), code.replace("3000", PORT).replace('"1m"', '"365d"'));
    writeFileSync(join(cwd, "tsconfig.json"), JSON.stringify({ compilerOptions, files: [file] }));
    await run(join(root, "node_modules/.bin/tsc"), ["-p", "."], cwd);
    const built = `built/${file.replace(".ts", ".js")}`;
    const serve = ["node_modules/srvx/bin/srvx.mjs", "serve", "--prod", "--port", PORT, "--host", "127.0.0.1", built];
    const child = spawn(process.execPath, isServed ? serve : [built], { cwd, stdio: "ignore" });
    try {
      await expect.poll(() => takesConnections(Number(PORT)), { timeout: 60_000, interval: 200 }).toBe(true);
      const statuses: number[] = [];
      let response: Response;
      do {
        response = await fetch(`http://127.0.0.1:${PORT}/`);
        statuses.push(response.status);
        await response.text();
      } while (response.status === 200 && statuses.length < 200);
      expect(statuses).toEqual([...Array(100).fill(200), 429]);
      expect(response.headers.get("ratelimit")).toMatch(/^"[\w-]+";r=0;t=\d+$/);
      expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
    } finally {
      child.kill();
      if (child.exitCode === null) await once(child, "exit");
    }
  }
});
