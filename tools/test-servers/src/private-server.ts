import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loopback, sparePort } from "./port.js";
import { until } from "./until.js";

/** Part of util-linux: makes the kernel stop the server when this process (or worker thread) dies in any way. */
const setpriv = "/usr/bin/setpriv";

/** How a server ends: at once, or by a signal that lets a parent stop its workers, which would outlive a parent that is killed. */
export type EndSignal = "SIGKILL" | "SIGTERM";

/** The server's port was already in use. */
class PortTakenError extends Error {}

/** A server on 127.0.0.1 with a temporary folder of its own. It ends with this process at the latest. */
export abstract class PrivateServer {
  readonly host: string = loopback;
  readonly port: number;
  /** Its folder: config, data and log. */
  readonly dir: string;
  readonly #name: string;
  readonly #endSignal: EndSignal;
  #child: ChildProcess | undefined;
  #paused = false;
  /** Resolves when the program is gone. */
  protected exited: Promise<void> = Promise.resolve();

  constructor(name: string, port: number, endSignal: EndSignal = "SIGKILL") {
    this.#name = name;
    this.port = port;
    this.dir = mkdtempSync(join(tmpdir(), `floodgate-${name.toLowerCase()}-`));
    this.#endSignal = endSignal;
    if (servers.size === 0) process.on("exit", removeAll);
    servers.add(this);
  }

  /**
   * Starts the server, and resolves when it answers.
   * @throws Error with the end of its log if it does not start.
   */
  abstract start(): Promise<void>;

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
   * Runs the program, and resolves when it is ready.
   * @throws Error with the end of the log if the program ends before.
   */
  protected async run(
    command: readonly string[],
    isReady: () => Promise<boolean>,
    env: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const dieWithParent = existsSync(setpriv) ? [setpriv, "--pdeathsig", this.#endSignal.slice(3), "--"] : [];
    const [program, ...args] = [...dieWithParent, ...command];
    const output = openSync(this.#logFile, "w");
    const child = spawn(program as string, args, { stdio: ["ignore", output, output], env: { ...process.env, ...env } });
    closeSync(output);
    this.#child = child;
    this.#paused = false;
    // If it cannot be started at all, there is an error event instead.
    const ended = (): void => {};
    this.exited = once(child, "exit").then(ended, ended);
    await until(`${this.#name} answers on port ${this.port}`, async () => !this.running || (await isReady()));
    if (this.running) return;
    const { log } = this;
    const message = `${this.#name} on port ${this.port} ended. Its log ends with:\n${log.trim().split("\n").slice(-10).join("\n")}`;
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
 * Starts a server on a spare port, or on a certain one.
 * @throws Error with its log if it does not start.
 */
export async function started<Server extends PrivateServer>(make: (port: number) => Server, port?: number): Promise<Server> {
  for (;;) {
    const server = make(port ?? (await sparePort()));
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.stop();
      // Another process took the free port first: try the next.
      if (!(error instanceof PortTakenError) || port !== undefined) throw error;
    }
  }
}
