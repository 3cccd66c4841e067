import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { rateLimit as expressLimit } from "@floodgate/express";
import { rateLimit as honoLimit } from "@floodgate/hono";
import { rateLimit as koaLimit } from "@floodgate/koa";
import { program, startApache, startCaddy, startNginx } from "@floodgate/test-servers";
import { getRequestListener } from "@hono/node-server";
import { serveStatic } from "@hono/node-server/serve-static";
import KoaRouter from "@koa/router";
import express5, { type Express } from "express";
import express4 from "express4";
import { Hono } from "hono";
import Koa from "koa";
import koaMount from "koa-mount";
import koaStatic from "koa-static";
import { gateway, serve } from "../../src/index.js";
import { files } from "./grammar.js";

const limit = 1_000_000;
/** A rule for each file, and for the same below a mount path. */
function rulesOf(pathsOf: (file: string) => string[]) {
  const paths = [...files.map(pathsOf), ...files.map((file) => pathsOf(`/m/:x${file}`))];
  return paths.map((path, i) => ({ name: `rule-${i}`, match: { path }, key: "global" as const, limit, window: "1d" as const }));
}

const rules = rulesOf((file) => [file]);
/** PHP serves a file under `/signin/any/path` too, as CGI does: that is another path, and a rule names it. */
const rulesWithPathInfo = rulesOf((file) => [file, `${file}/*`]);

/** The names of the rules for a file. */
export const ruleNames = (file: string): string[] => [files.indexOf(file), files.indexOf(file) + files.length].map((i) => `"rule-${i}"`);

export interface Server {
  readonly name: string;
  readonly port: number;
}

/** The folder with the files, and the servers over it. */
export class Servers {
  readonly root: string = mkdtempSync(join(tmpdir(), "floodgate-paths-"));
  readonly #stops: (() => unknown)[] = [];

  constructor() {
    chmodSync(this.root, 0o755);
    for (const file of files) {
      mkdirSync(dirname(join(this.root, file)), { recursive: true });
      writeFileSync(join(this.root, file), file);
    }
  }

  /** Frameworks with our middleware, their routers and their static files. */
  async apps(): Promise<Server[]> {
    const { root } = this;
    const expressOf = (express: typeof express5): Express => {
      const app = express().use(expressLimit({ rules }));
      app.use("/static", express.static(join(root, "static")));
      app.get("/signin", (_, res) => void res.send("/signin"));
      app.use(
        "/deep",
        express.Router().get("/:a/b.txt", (req, res) => void res.send(req.params.a === "a" ? "/deep/a/b.txt" : "")),
      );
      app.use("/m/:x", express.static(root));
      return app.use(express.static(root));
    };
    const koa = new Koa();
    const router = new KoaRouter();
    router.get("/signin", (ctx) => {
      ctx.body = "/signin";
    });
    koa
      .use(koaLimit({ rules }))
      .use(router.routes())
      .use(koaMount("/static", koaStatic(join(root, "static"))))
      .use(koaStatic(root));
    koa.silent = true;
    const hono = new Hono();
    hono.use(honoLimit({ rules }));
    hono.get("/signin", (c) => c.text("/signin"));
    hono.get("/deep/:a/b.txt", (c) => c.text(c.req.param("a") === "a" ? "/deep/a/b.txt" : ""));
    hono.use("*", serveStatic({ root }));
    return [
      await this.#node("Express 5", expressOf(express5)),
      await this.#node("Express 4", expressOf(express4 as never)),
      await this.#node("Koa", koa.callback()),
      await this.#node("Hono", getRequestListener(hono.fetch)),
    ];
  }

  /** Web servers, each behind `floodgate gateway`. */
  async upstreams(): Promise<Server[]> {
    const { root } = this;
    const nginx = await startNginx({ config: ({ port }) => `server { listen 127.0.0.1:${port}; root ${root}; }` });
    const unmerged = await startNginx({ config: ({ port }) => `merge_slashes off; server { listen 127.0.0.1:${port}; root ${root}; }` });
    const caddy = await startCaddy({
      config: ({ port }) =>
        `http://127.0.0.1:${port} {\n@signin path /signin\nhandle @signin {\nrespond * "/signin"\n}\nhandle {\nroot * ${root}\nfile_server\n}\n}\n`,
    });
    const apache = await startApache({
      config: ({ port }) =>
        `<VirtualHost *:${port}>\nDocumentRoot ${root}\nAllowEncodedSlashes On\n<Directory ${root}>\nRequire all granted\n</Directory>\n</VirtualHost>\n`,
    });
    this.#stops.push(...[nginx, unmerged, caddy, apache].map((server) => () => server.stop()));
    const python = await this.#program(program("python3"), (port) => [
      "-m",
      "http.server",
      "--bind",
      "127.0.0.1",
      "--directory",
      root,
      "--protocol",
      "HTTP/1.1",
      `${port}`,
    ]);
    const php = await this.#program(program("php"), (port) => ["-S", `127.0.0.1:${port}`, "-t", root]);
    return Promise.all(
      Object.entries({
        nginx: nginx.port,
        "nginx that merges no slashes": unmerged.port,
        Caddy: caddy.port,
        Apache: apache.port,
        Python: python,
        PHP: php,
      }).map(async ([name, port]) => ({ name, port: await this.#gateway(port, "count", name === "PHP" ? rulesWithPathInfo : rules) })),
    );
  }

  /** nginx behind a `floodgate gateway` with its default: an ambiguous path is rejected. */
  async rejecting(): Promise<Server> {
    const nginx = await startNginx({ config: ({ port }) => `server { listen 127.0.0.1:${port}; root ${this.root}; }` });
    this.#stops.push(() => nginx.stop());
    return { name: "nginx", port: await this.#gateway(nginx.port) };
  }

  /** A decision server. */
  async decisions(): Promise<number> {
    const running = await serve({
      rules: this.#rulesFile(),
      listen: "127.0.0.1:0",
      admin: false,
      logLevel: "silent",
      drainMs: 0,
      closeMs: 0,
    });
    this.#stops.push(() => running.close());
    return portOf(running.addresses["listen"]);
  }

  async stop(): Promise<void> {
    for (const stop of this.#stops.reverse()) await stop();
    rmSync(this.root, { recursive: true });
  }

  #rulesFile(all = rules): string {
    const file = join(this.root, all === rules ? "limits.json" : "limits-php.json");
    writeFileSync(file, JSON.stringify({ rules: all }));
    return file;
  }

  async #gateway(port: number, ambiguousPath?: "count", all = rules): Promise<number> {
    const running = await gateway({
      rules: this.#rulesFile(all),
      upstream: `http://127.0.0.1:${port}`,
      listen: "127.0.0.1:0",
      admin: false,
      logLevel: "silent",
      drainMs: 0,
      closeMs: 0,
      ...(ambiguousPath !== undefined && { ambiguousPath }),
    });
    this.#stops.push(() => running.close());
    return portOf(running.addresses["listen"]);
  }

  async #node(name: string, listener: RequestListener): Promise<Server> {
    const server = createServer(listener);
    await once(server.listen(0, "127.0.0.1"), "listening");
    this.#stops.push(() => {
      server.closeAllConnections();
      server.close();
    });
    return { name, port: (server.address() as AddressInfo).port };
  }

  async #program(command: string, args: (port: number) => string[]): Promise<number> {
    const probe = createServer().listen(0, "127.0.0.1");
    await once(probe, "listening");
    const { port } = probe.address() as AddressInfo;
    probe.close();
    const child: ChildProcess = spawn(command, args(port), { stdio: "ignore" });
    this.#stops.push(() => child.kill("SIGKILL"));
    while (child.exitCode === null && !(await connects(port))) await new Promise((resolve) => setTimeout(resolve, 50));
    return port;
  }
}

const portOf = (address = ""): number => Number(address.slice(address.lastIndexOf(":") + 1));

function connects(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}
