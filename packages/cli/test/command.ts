import { execFile } from "node:child_process";
import { join } from "node:path";
import { run } from "../src/index.js";

/** What a command left. */
export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs the command in this process. */
export async function floodgate(args: readonly string[], input = ""): Promise<Ended> {
  let out = "";
  let err = "";
  const code = await run(args, {
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    readInput: async () => input,
    hasColors: false,
  });
  return { code, out, err };
}

const main = join(__dirname, "..", "dist", "main.js");

/** Runs the built command as a shell would, and answers once its process has ended by itself. */
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
