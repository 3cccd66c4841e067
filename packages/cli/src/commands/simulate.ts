import { simulate, simulationJson, simulationText } from "@floodgate/simulator";
import type { Command } from "commander";
import { Failure } from "../failure.js";
import { type Io, paint } from "../io.js";
import { readText, validRules } from "../load-rules.js";
import { logSources, type ReplayOptions, replayOptions, replayOptionsOf } from "../logs.js";
import { examples } from "../options.js";
import { withProgress } from "../output/progress.js";
import { json, sanitizeLines } from "../output/terminal.js";

interface SimulateOptions extends ReplayOptions {
  readonly rules?: string;
  readonly json?: true;
}

export function addSimulate(program: Command, io: Io): void {
  const command = program
    .command("simulate")
    .description("Replay access logs: see whom rules would have limited.")
    .argument("<logs...>", "access logs, also .gz and .zst, in any order; - for standard input")
    .option("--rules <file>", "replay the requests against these rules");
  replayOptions(command).option("--json", "print JSON");
  examples(
    command,
    "simulate access.log --rules limits.yaml",
    "zcat access.log.*.gz | floodgate simulate - --rules limits.yaml --json",
    "simulate access.log --rules limits.yaml --format '$remote_addr [$time_local] \"$request\" \"$http_x_user\"' --key 'user=$http_x_user'",
  ).action((logs: string[], options: SimulateOptions) => runSimulate(io, logs, options));
}

async function runSimulate(io: Io, logs: readonly string[], options: SimulateOptions): Promise<void> {
  if (options.rules === undefined) throw new Failure("usage", "say what to do with the requests. Write --rules limits.yaml.");
  const { text, name } = await readText(io, options.rules);
  const set = validRules(io, text, name);
  const sources = await logSources(io, logs);
  const simulation = await withProgress(io, sources, 1, (onProgress) =>
    simulate(
      sources.map(({ source }) => source),
      set,
      { ...replayOptionsOf(options, set), onProgress },
    ),
  );
  print(
    io,
    options,
    simulationJson(simulation),
    simulationText(simulation, (format, text) => paint(io, format, text)),
    simulation.notes,
  );
  if (simulation.requests === 0 && simulation.lines > simulation.skippedBecause.blank) {
    throw new Failure("refused", "the log has no request.");
  }
}

/** Prints a report, and its notes: in JSON they are part of it, else they go to standard error. */
function print(io: Io, { json: asJson }: { readonly json?: true }, report: object, text: string, notes: readonly string[]): void {
  if (asJson === true) {
    io.out(json(report));
    return;
  }
  io.out(text);
  for (const note of notes) io.err(sanitizeLines(`floodgate: ${note.replace(/[\r\n]+/g, " ")}\n`));
}
