import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The algorithms by the number under which the script knows them, from 1 on. A file each, the twin of core's. */
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

/** An algorithm's functions are made only in a run that needs them: to make all of them takes longer than to decide. */
const dispatcher = algorithms.map((name, i) => `${i === 0 ? "" : "else"}if number == ${i + 1} then\n${lua(name)}`).join("");

/** The one script of the store: its beginning, the algorithms, and the batch. */
export const source: string = `${lua("prelude")}\nlocal function algorithm(number)\n${dispatcher}end\nend\n\n${lua("batch")}`;

/** By which Redis knows it. */
export const sha: string = createHash("sha1").update(source).digest("hex");
