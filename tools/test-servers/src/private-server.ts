import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loopback, sparePort } from "./port.js";
import { until } from "./until.js";

/** Part of util-linux: makes the kernel stop the server when this process (or worker thread) dies in any way. */
const setpriv = "/usr/bin/setpriv";

/** Where a server runs. */
export interface ServerPlace {
  /** A port of 127.0.0.1. */
  readonly port: number;
  /** The server's own folder: config, data and log. Any user can read it. */
  readonly dir: string;
}

/** What one kind of server needs to run in the foreground and in its own folder. */
export interface ServerKind {
  readonly name: string;
  /** The files that make up the config: name to text. */
  files?(place: ServerPlace): Readonly<Record<string, string>>;
  /** Prepares the folder further, once. */
  prepare?(place: ServerPlace): void;
  /** The program and its arguments. */
  command(place: ServerPlace): readonly string[];
  env?(place: ServerPlace): Readonly<Record<string, string>>;
  /** Whether this process, and no other one on the port, answers. */
  ready(server: PrivateServer): Promise<boolean>;
  /** How it ends: at once, or by a signal that lets a parent stop its workers, which would outlive a killed parent. Default `SIGKILL`. */
  readonly endSignal?: "SIGKILL" | "SIGTERM";
}

/** The server's port was already in use. */
class PortTakenError extends Error {}

/** A server on 127.0.0.1 with a temporary folder of its own. It ends with this process at the latest. */
export class PrivateServer implements ServerPlace {
  readonly host: string = loopback;
  readonly port: number;
  readonly dir: string;
  readonly #kind: ServerKind;
  readonly #endSignal: "SIGKILL" | "SIGTERM";
  #child: ChildProcess | undefined;
  #paused = false;
  /** Resolves when the program is gone. */
  protected exited: Promise<void> = Promise.resolve();

  constructor(kind: ServerKind, port: number) {
    this.#kind = kind;
    this.#endSignal = kind.endSignal ?? "SIGKILL";
    this.port = port;
    this.dir = mkdtempSync(join(tmpdir(), `floodgate-${kind.name.toLowerCase()}-`));
    if (servers.size === 0) process.on("exit", removeAll);
    servers.add(this);
    chmodSync(this.dir, 0o755);
    for (const [name, text] of Object.entries(kind.files?.(this) ?? {})) writeFileSync(join(this.dir, name), text);
    kind.prepare?.(this);
  }

  /** Its address, if it speaks HTTP. */
  get url(): string {
    return `http://${this.host}:${this.port}`;
  }

  /** The process id; a restart changes it. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Whether it is running: neither killed nor paused. */
  get running(): boolean {
    const child = this.#child;
    return child?.pid !== undefined && child.exitCode === null && child.signalCode === null && !this.#paused;
  }

  /** What it has written since it was started last. */
  get log(): string {
    return existsSync(this.#logFile) ? readFileSync(this.#logFile, "utf8") : "";
  }

  /** Kills the server like a crash, and resolves when it is gone. `restart` brings it back. */
  async kill(): Promise<void> {
    this.#child?.kill(this.#endSignal);
    await this.exited;
  }

  /** Makes the server hang (SIGSTOP): it stays connected but silent until `resume`. */
  pause(): void {
    this.#paused = true;
    this.#child?.kill("SIGSTOP");
  }

  resume(): void {
    this.#paused = false;
    this.#child?.kill("SIGCONT");
  }

  /** Restarts the server on the same port (killing it first if it runs), and resolves when it answers. */
  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  /** Stops the server permanently, and removes its folder. */
  async stop(): Promise<void> {
    await this.kill();
    servers.delete(this);
    if (servers.size === 0) process.off("exit", removeAll);
    this.remove();
  }

  /** @internal Synchronous, for use at exit. */
  remove(): void {
    this.#child?.kill(this.#endSignal);
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 5 });
  }

  /**
   * Starts the server, and resolves when it answers.
   * @throws Error with the end of its log if it ends before.
   */
  async start(): Promise<void> {
    const { name, command, env, ready } = this.#kind;
    const dieWithParent = existsSync(setpriv) ? [setpriv, "--pdeathsig", this.#endSignal.slice(3), "--"] : [];
    const [program, ...args] = [...dieWithParent, ...command(this)];
    const output = openSync(this.#logFile, "w");
    const child = spawn(program as string, args, { stdio: ["ignore", output, output], env: { ...process.env, ...env?.(this) } });
    closeSync(output);
    this.#child = child;
    this.#paused = false;
    // If it cannot be started at all, there is an error event instead.
    const ended = (): void => {};
    this.exited = once(child, "exit").then(ended, ended);
    await until(`${name} answers on port ${this.port}`, async () => !this.running || (await ready(this)));
    if (this.running) return;
    const { log } = this;
    const message = `${name} on port ${this.port} ended. Its log ends with:\n${log.trim().split("\n").slice(-10).join("\n")}`;
    throw /address already in use|cannot bind socket/i.test(log) ? new PortTakenError(message) : new Error(message);
  }

  get #logFile(): string {
    return join(this.dir, "log");
  }
}

const servers = new Set<PrivateServer>();

function removeAll(): void {
  for (const server of servers) server.remove();
}

/**
 * Starts a server on a spare port.
 * @throws Error with its log if it does not start.
 */
export async function startOnSparePort<Server extends PrivateServer>(make: (port: number) => Server): Promise<Server> {
  for (;;) {
    const server = make(await sparePort());
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.stop();
      // Another process took the free port first: try the next.
      if (!(error instanceof PortTakenError)) throw error;
    }
  }
}
