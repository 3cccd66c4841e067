import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The Lua files of the algorithms. The script refers to them by their index here, from 1. */
export const algorithms = [
  "fixed-window",
  "two-counters",
  "sliding-window-counter",
  "sliding-window-log",
  "smooth-bucket",
  "interval-bucket",
  "leaky-bucket",
] as const;

const lua = (name: string): string => readFileSync(join(__dirname, "..", "lua", `${name}.lua`), "utf8");

/** Wrapped in functions, so that a run creates only the algorithms that it uses: creating all costs more than a decision. */
const dispatcher = algorithms.map((name, i) => `${i === 0 ? "" : "else"}if number == ${i + 1} then\n${lua(name)}`).join("");

/** The whole script: prelude, algorithms, batch. */
export const source: string = `${lua("prelude")}\nlocal function algorithm(number)\n${dispatcher}end\nend\n\n${lua("batch")}`;

/** The hash for EVALSHA. */
export const sha: string = createHash("sha1").update(source).digest("hex");
