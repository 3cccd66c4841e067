import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync } from "node:fs";

/** Part of util-linux: makes the kernel kill the server when this process (or worker thread) dies in any way. */
const setpriv = "/usr/bin/setpriv";
const dieWithParent = existsSync(setpriv) ? [setpriv, "--pdeathsig", "KILL", "--"] : [];

/** A program that runs until it is killed, with its output in a file. */
export class ServerProcess {
  readonly #child: ChildProcess;
  /** Resolves when it is gone. */
  readonly exited: Promise<void>;

  constructor(program: string, args: readonly string[], outputFile: string) {
    const [command, ...rest] = [...dieWithParent, program, ...args];
    const output = openSync(outputFile, "a");
    this.#child = spawn(command as string, rest, { stdio: ["ignore", output, output] });
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

  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.exited;
  }
}
