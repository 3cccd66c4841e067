import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The lines of a package's sources that are neither empty nor a comment. */
export function sourceLines(folder) {
  const files = readdirSync(join(folder, "src"), { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  const lines = files.flatMap((file) =>
    readFileSync(join(folder, "src", file), "utf8")
      .replace(/^\s*\/\*[\s\S]*?\*\/\s*$/gm, "")
      .split("\n"),
  );
  return lines.filter((line) => !/^\s*(\/\/|$)/.test(line)).length;
}
