import { type Duration, parseDuration } from "@floodgate/core";
import { isBuiltInKey } from "@floodgate/core/rules";
import * as simulator from "@floodgate/simulator";
import { type Command, InvalidArgumentError } from "commander";
import { Failure } from "../failure.js";
import { reportFile } from "../files.js";
import { type Io, painter } from "../io.js";
import { logSources, type ReplayOptions, replayOptions, replayOptionsOf, type SizedSource, withRepeatable } from "../logs.js";
import { durationOption, examples, wholeNumber } from "../options.js";
import { type OnProgress, withProgress } from "../output/progress.js";
import { json, sanitize, sanitizeLines, shellWord } from "../output/terminal.js";
import { fileRulesOf } from "../rules/rules-in-force.js";
import { followLogs } from "./follow.js";

interface SimulateOptions extends ReplayOptions {
  readonly rules?: string;
  readonly compare?: readonly string[];
  readonly suggest?: true;
  readonly touch?: number;
  readonly window?: string;
  readonly by?: string;
  readonly match?: string;
  readonly html?: string;
  readonly grid?: number;
  readonly follow?: true;
  readonly every?: Duration;
  readonly json?: true;
}

export function addSimulate(program: Command, io: Io): void {
  const command = program
    .command("simulate")
    .description("Replay access logs: see whom rules would have limited, compare policies, or get limits suggested.")
    .usage("[options] <logs...>")
    .argument("[logs...]", "access logs, also .gz and .zst, in any order; - for standard input")
    .option("--rules <file>", "replay the requests against these rules")
    .option("--compare <policies...>", "compare policies: '100/1m' 'token-bucket 20 10/s' 'gcra 100/1m 20'")
    .option("--suggest", "print a rules file with the least limits that touch few clients")
    .option("--touch <share>", "with --suggest: the share of clients that a limit may touch (default: 0.1%)", share)
    .option(
      "--window <duration>",
      "with --suggest: the window of the limits (default: 1m); with --compare: the window to measure",
      durationOption,
    )
    .option("--by <key>", "with --compare or --suggest: what to count by, as a rule's key (default: ip)")
    .option("--match <request>", 'with --compare or --suggest: the requests that count: "POST /login", "/posts/*"');
  replayOptions(command)
    .option("--html <file>", "also write a page to look at: traffic, clients, and limits to drag. It reads the logs twice more")
    .option(
      "--grid <limits>",
      "about how many other limits are tried for each rule, 0 for none (default: 24 with --html); with --json it adds what they did",
      wholeNumber(0, 99),
    )
    .option("--follow", "with --rules: go on with what is written to the logs, until SIGINT or SIGTERM")
    .option("--every <duration>", "with --follow: how often a line is printed, unless on a terminal (default: 10s)", durationOption)
    .option("--json", "print JSON");
  examples(
    command,
    "simulate access.log --rules limits.yaml",
    "simulate access.log --compare '100/1m' 'token-bucket 20 10/s' 'sliding-window-log 100/1m'",
    "simulate access.log --rules limits.yaml --html report.html",
    "simulate access.log --rules limits.yaml --follow",
    "simulate access.log.*.gz --suggest --touch 0.1% > limits.yaml",
    "simulate access.log --rules limits.yaml --format '$remote_addr [$time_local] \"$request\" \"$http_x_user\"' --key 'user=$http_x_user'",
  ).action((logs: string[], options: SimulateOptions) => runSimulate(io, logs, options, commandText(program)));
}

/** The command as it was given. */
function commandText(program: Command): string {
  const { rawArgs = ["simulate"] } = program as Command & { readonly rawArgs?: readonly string[] };
  return ["floodgate", ...rawArgs].map(shellWord).join(" ");
}

/** What is printed. */
interface Report {
  readonly report: object;
  /** Undefined if no page was wanted. */
  readonly page: simulator.ReportData | undefined;
  readonly text: string;
  readonly log: simulator.LogSummary & { readonly notes: readonly string[] };
}

async function runSimulate(io: Io, logs: readonly string[], options: SimulateOptions, command: string): Promise<void> {
  if (logs.length === 0) {
    // An option with several values takes the logs that come after it.
    throw new Failure("usage", "no log is given. Write the logs before the options: floodgate simulate access.log --compare '100/1m'.");
  }
  const tasks = [options.rules, options.compare, options.suggest].filter((task) => task !== undefined);
  if (tasks.length !== 1) {
    const given = tasks.length === 0 ? "say what to do with the requests" : "--rules, --compare and --suggest cannot be used together";
    throw new Failure("usage", `${given}. Write --rules limits.yaml, --compare '100/1m' 'token-bucket 20 10/s', or --suggest.`);
  }
  refuseOptions(options);
  const inputs = options.rules === undefined ? logs : [...logs, options.rules];
  if (inputs.filter((name) => name === "-").length > 1) throw new Failure("usage", "standard input (-) can be read only once.");
  if (options.follow === true) {
    await followRules(io, logs, options);
    return;
  }
  const write = options.html === undefined ? undefined : await reportFile(options.html, inputs);
  const sources = await logSources(io, logs);
  const made = { atMs: Date.now(), command };
  const read = (all: readonly SizedSource[]): Promise<Report> => run(io, options, made, all);
  const readsAgain = options.suggest !== undefined || hasPage(options);
  const { report, page, text, log } = await (readsAgain ? withRepeatable(sources, read) : read(sources));
  if (write !== undefined && page !== undefined) await write(simulator.reportHtml(page));
  print(io, options, page === undefined ? report : { ...report, ...simulator.reportJson(page) }, text, log.notes);
  if (write !== undefined) io.err(`${sanitize(`floodgate: the report is in ${options.html}`)}\n`);
  if (log.requests === 0) {
    const isEmpty = log.lines === log.skippedBecause.blank;
    throw new Failure("refused", isEmpty ? "the log is empty." : "the log has no request.");
  }
}

async function followRules(io: Io, logs: readonly string[], options: SimulateOptions): Promise<void> {
  if (options.rules === undefined || hasPage(options)) {
    throw new Failure(
      "usage",
      "--follow is for --rules, without --html or --grid. Write floodgate simulate access.log --rules limits.yaml --follow.",
    );
  }
  const sources = await logSources(io, logs);
  const { set } = await fileRulesOf(io, options.rules, options);
  const own = replayOptionsOf(options, simulator.appNames(set));
  const live = { everyMs: parseDuration(options.every ?? "10s"), json: options.json === true };
  const log = await followLogs(io, sources, set, own, live);
  print(io, options, simulator.simulationJson(log), simulator.simulationText(log, painter(io)), log.notes);
}

/** Replays the logs for the task that the options name. */
async function run(io: Io, options: SimulateOptions, made: simulator.Made, all: readonly SizedSource[]): Promise<Report> {
  const { rules, compare: policies, grid } = options;
  const logs = all.map(({ source }) => source);
  // What the page shows takes two more readings of the logs.
  const withPasses = (own: number, work: (onProgress: OnProgress | undefined) => Promise<Report>): Promise<Report> =>
    withProgress(io, all, hasPage(options) ? own + 2 : own, work);
  if (rules !== undefined) {
    const { set } = await fileRulesOf(io, rules, options);
    const replay = { ...replayOptionsOf(options, simulator.appNames(set)), grid };
    return withPasses(1, async (onProgress) => {
      const own = { ...replay, onProgress };
      const log = await simulator.simulate(logs, set, own);
      const page = hasPage(options) ? await simulator.simulationReport(logs, set, log, own, made) : undefined;
      return { report: simulator.simulationJson(log), page, text: simulator.simulationText(log, painter(io)), log };
    });
  }
  const trial = { ...trialOptions(options), grid };
  if (policies !== undefined) {
    return withPasses(1, async (onProgress) => {
      const own = { ...trial, onProgress };
      const log = await simulator.compare(logs, policies, own);
      const page = hasPage(options) ? await simulator.comparisonReport(logs, log, own, made) : undefined;
      return { report: simulator.comparisonJson(log), page, text: simulator.comparisonText(log, painter(io)), log };
    });
  }
  return withPasses(3, async (onProgress) => {
    const own = { ...trial, touch: options.touch, onProgress };
    const log = await simulator.suggest(logs, own);
    const page = hasPage(options) ? await simulator.suggestionReport(logs, log, own, made) : undefined;
    return { report: simulator.suggestionJson(log), page, text: simulator.suggestionText(log), log };
  });
}

function hasPage({ html, grid }: SimulateOptions): boolean {
  return html !== undefined || (grid !== undefined && grid > 0);
}

/** @throws Failure if an option is for another task, or if the format or a policy is invalid. */
function refuseOptions(options: SimulateOptions): void {
  try {
    if (options.format !== undefined) simulator.formatOf(options.format);
    options.compare?.forEach(simulator.parsePolicy);
  } catch (cause) {
    throw new Failure("usage", (cause as Error).message, { cause });
  }
  if (options.every !== undefined && options.follow === undefined) throw new Failure("usage", "--every is for --follow. Add --follow.");
  if (options.touch !== undefined && options.suggest === undefined) throw new Failure("usage", "--touch is for --suggest. Add --suggest.");
  if (options.rules === undefined) return;
  const option = (["window", "by", "match"] as const).find((name) => options[name] !== undefined);
  if (option === undefined) return;
  throw new Failure(
    "usage",
    `--${option} is for --compare and --suggest. The rules say ${option === "by" ? "by what they count" : "it themselves"}.`,
  );
}

function trialOptions(options: SimulateOptions): ReturnType<typeof replayOptionsOf> & Pick<SimulateOptions, "by" | "match" | "window"> {
  const { by, match, window } = options;
  const keys = (by ?? "ip").split(",").map((key) => key.trim().replace(/^secret:/, ""));
  const appKeys = keys.filter((key) => !isBuiltInKey(key));
  const own = replayOptionsOf(options, { keys: appKeys, costs: [] });
  const unknown = appKeys.find((key) => own.keys?.[key] === undefined);
  if (unknown !== undefined) {
    throw new Failure("usage", `--by ${JSON.stringify(unknown)}: say which field of the log has this key. Write --key ${unknown}=<field>.`);
  }
  return { ...own, ...(by && { by }), ...(match && { match }), ...(window && { window }) };
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

/** `0.1%`, or `0.001`. */
function share(text: string): number {
  const [, digits = "", percent] = /^(\d+(?:\.\d+)?)\s*(%?)$/.exec(text) ?? [];
  const value = percent === "%" ? Number(digits) / 100 : Number(digits);
  if (digits !== "" && value < 1) return value;
  throw new InvalidArgumentError("It must be a percentage below 100%, such as 0.1%.");
}
