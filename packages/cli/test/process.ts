import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Ended } from "./command.js";

const main = join(__dirname, "..", "dist", "main.js");

/** Runs the built command in a process, and waits until the process exits by itself. */
export function floodgateProcess(
  args: readonly string[],
  { input = "", env = {} }: { input?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [main, ...args], { env: { ...process.env, ...env } }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, err });
    });
    child.stdin?.end(input);
  });
}

/** Runs the built command with a standard output that is closed, or with a file as an output. */
export async function floodgateWithOutput(
  args: readonly string[],
  { out = "pipe", err = "pipe" }: { out?: number | "pipe"; err?: number | "pipe" },
): Promise<Omit<Ended, "out">> {
  const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", out, err] });
  onTestFinished(() => void child.kill("SIGKILL"));
  child.stdout?.destroy();
  let written = "";
  child.stderr?.on("data", (chunk) => {
    written += chunk;
  });
  const [code] = await once(child, "close");
  return { code, err: written };
}

/** A command that runs until it is stopped. */
export interface Running {
  /** Waits until standard output has a text. */
  printed(text: string): Promise<void>;
  /** Stops to read. */
  pause(): void;
  stop(signal: NodeJS.Signals): void;
  /** The exit code. `ended` waits for the output too. */
  readonly exited: Promise<number | null>;
  readonly ended: Promise<Omit<Ended, "err">>;
}

/** Starts the built command in a process. */
export function startFloodgate(args: readonly string[]): Running {
  const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "ignore"] });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  let out = "";
  child.stdout.on("data", (chunk) => {
    out += chunk;
  });
  return {
    printed: async (text) => {
      while (!out.includes(text)) await once(child.stdout, "data");
    },
    pause: () => void child.stdout.pause(),
    stop: (signal) => child.kill(signal),
    exited: once(child, "exit").then(([code]) => code),
    ended: once(child, "close").then(([code]) => ({ code, out })),
  };
}
