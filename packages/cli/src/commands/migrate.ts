import type { Command } from "commander";
import { Failure } from "../failure.js";

/** Adds `migrate`, which says where it is: a package of its own, because it needs a parser that nothing else needs. */
export function addMigrate(program: Command): void {
  program
    .command("migrate", { hidden: true })
    .description("Rewrite the calls of another rate limiter: npx @floodgate/migrate.")
    .argument("[words...]")
    .allowUnknownOption()
    .action((words: readonly string[]) => {
      const given = words.length === 0 ? "express-rate-limit app.js" : words.join(" ");
      throw new Failure("usage", `migrate is a package of its own. Run npx @floodgate/migrate ${given}`);
    });
}
