import { Readable } from "node:stream";
import { run } from "../src/index.js";

/** The result of a command. */
export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs the command in this process. */
export async function floodgate(args: readonly string[], input = "", isTerminal = false): Promise<Ended> {
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
    input: Readable.from([Buffer.from(input)]),
    isTerminal,
    errTerminal: undefined,
    hasColors: false,
  });
  return { code, out, err };
}
