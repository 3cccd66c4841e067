import { writeFile } from "node:fs/promises";
import type { Command } from "commander";
import { unwritable } from "../failure.js";
import type { Io } from "../io.js";
import { pullText } from "../load-rules.js";
import { examples, type RedisOptions, redisOptions } from "../options.js";
import { versionText } from "../output/format.js";
import { sanitizeLines } from "../output/terminal.js";
import { withRedis } from "../redis.js";

interface PullOptions extends RedisOptions {
  readonly output?: string;
}

export function addPull(program: Command, io: Io): void {
  const command = program.command("pull").description("Print the active rules as they were pushed. Their version goes to standard error.");
  redisOptions(command).option("--output <file>", "write the rules to a file");
  examples(command, "pull --redis redis://127.0.0.1:6379 > limits.yaml", "pull --redis redis://127.0.0.1:6379 --output limits.yaml").action(
    (options: PullOptions) => pull(io, options),
  );
}

async function pull(io: Io, options: PullOptions): Promise<void> {
  const { text, version } = await withRedis(options, (redis) => pullText(redis, options.rulesKey));
  if (options.output === undefined) io.out(io.isTerminal ? sanitizeLines(text) : text);
  else {
    await writeFile(options.output, text).catch((cause) => {
      throw unwritable(options.output as string, cause);
    });
  }
  io.err(versionText(options.rulesKey, version));
}
