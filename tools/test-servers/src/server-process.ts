import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync } from "node:fs";

/** Part of util-linux: makes the kernel stop the server when this process (or worker thread) dies in any way. */
const setpriv = "/usr/bin/setpriv";

/** How a server ends: at once, or by a signal that lets a parent stop its workers. */
export type EndSignal = "SIGKILL" | "SIGTERM";

export interface ServerProcessOptions {
  /** Default SIGKILL. A server with workers takes SIGTERM, because workers would outlive a parent that is killed. */
  endSignal?: EndSignal;
  /** Added to this process's environment. */
  env?: Readonly<Record<string, string>>;
}

/** A program that runs until it is ended, with its output in a file. */
export class ServerProcess {
  readonly #child: ChildProcess;
  readonly #endSignal: EndSignal;
  /** Resolves when it is gone. */
  readonly exited: Promise<void>;

  constructor(program: string, args: readonly string[], outputFile: string, { endSignal = "SIGKILL", env }: ServerProcessOptions = {}) {
    const dieWithParent = existsSync(setpriv) ? [setpriv, "--pdeathsig", endSignal.slice(3), "--"] : [];
    const [command, ...rest] = [...dieWithParent, program, ...args];
    const output = openSync(outputFile, "a");
    this.#endSignal = endSignal;
    this.#child = spawn(command as string, rest, { stdio: ["ignore", output, output], env: { ...process.env, ...env } });
    closeSync(output);
    // If it cannot be started at all, there is an error event instead.
    const ended = (): void => {};
    this.exited = once(this.#child, "exit").then(ended, ended);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get running(): boolean {
    return this.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Synchronous, for use at exit. */
  end(): void {
    this.signal(this.#endSignal);
  }

  /** Ends it, and resolves when it is gone. */
  async kill(): Promise<void> {
    this.end();
    await this.exited;
  }
}

const cleanups = new Set<() => void>();

/** Runs a cleanup when this process exits, unless it is cancelled earlier. */
export function atExit(cleanup: () => void): () => void {
  if (cleanups.size === 0) process.on("exit", cleanUp);
  cleanups.add(cleanup);
  return () => {
    cleanups.delete(cleanup);
    if (cleanups.size === 0) process.off("exit", cleanUp);
  };
}

function cleanUp(): void {
  for (const cleanup of cleanups) cleanup();
}
