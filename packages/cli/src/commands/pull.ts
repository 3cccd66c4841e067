import { writeFile } from "node:fs/promises";
import type { Command } from "commander";
import { unwritable } from "../failure.js";
import type { Io } from "../io.js";
import { pullText } from "../load-rules.js";
import { examples, type JsonOption, type RedisOptions, redisOptions } from "../options.js";
import { versionText } from "../output/format.js";
import { json, sanitizeLines } from "../output/terminal.js";
import { withRedis } from "../redis.js";

interface PullOptions extends RedisOptions, JsonOption {
  readonly output?: string;
}

export function addPull(program: Command, io: Io): void {
  const command = program.command("pull").description("Print the active rules as they were pushed. Their version goes to standard error.");
  redisOptions(command).option("--output <file>", "write the rules to a file").option("--json", "print JSON");
  examples(command, "pull --redis redis://127.0.0.1:6379 > limits.yaml", "pull --redis redis://127.0.0.1:6379 --output limits.yaml").action(
    (options: PullOptions) => pull(io, options),
  );
}

async function pull(io: Io, { output, ...options }: PullOptions): Promise<void> {
  const { rulesKey: key } = options;
  const { text, version } = await withRedis(options, (redis) => pullText(redis, key));
  if (output !== undefined) {
    await writeFile(output, text).catch((cause) => {
      throw unwritable(output, cause);
    });
  }
  if (options.json === true) return io.out(json({ key, version, ...(output === undefined ? { text } : { file: output }) }));
  if (output === undefined) io.out(io.isTerminal ? sanitizeLines(text) : text);
  io.err(versionText(key, version));
}
