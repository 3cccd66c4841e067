import { type Library, type Migration, migrate } from "../src/index.js";

export function rewritten(code: string, library: Library = "express-rate-limit", file = "app.ts"): Migration {
  const migration = migrate(library, file, code);
  if (migration === undefined) throw new Error("The code does not use the library.");
  return migration;
}

/** The first words of what is left to do, with their lines. */
export function todo({ byHand }: Migration): string[] {
  return byHand.map(({ line, message }) => `${line} ${message.slice(0, 24)}`);
}
