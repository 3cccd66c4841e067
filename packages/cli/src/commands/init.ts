import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { type Duration, slidingWindowCounter } from "@floodgate/core";
import { parseRules } from "@floodgate/rules";
import { type Command, InvalidArgumentError, Option } from "commander";
import { Failure } from "../failure.js";
import { writeText } from "../files.js";
import type { Io } from "../io.js";
import { examples } from "../options.js";
import { validRulesText } from "../output/format.js";
import { json, sanitize } from "../output/terminal.js";
import { type ChosenRule, type Framework, frameworks, type Preset, presets, presetsFor, rulesFile } from "../rules/presets.js";

interface InitOptions {
  readonly preset?: readonly Preset[];
  readonly framework?: string;
  readonly shadow?: true;
  readonly yes?: true;
  readonly force?: true;
  readonly json?: true;
}

/** What `init` writes. */
interface Wanted {
  readonly rules: readonly ChosenRule[];
  readonly isShadow: boolean;
  readonly framework: Framework | undefined;
}

export function addInit(program: Command, io: Io): void {
  const command = program
    .command("init")
    .description("Ask what to limit, and write a rules file to begin with.")
    .argument("[file]", "the file to write", "limits.yaml")
    .option("--preset <names>", `do not ask, and write these rules: ${presets.map(({ name }) => name).join(", ")}`, presetNames)
    .addOption(new Option("--framework <name>", "what the app is built with").choices(frameworks.map(({ name }) => name)))
    .option("--yes", `do not ask, and write the rule ${(presets[0] as Preset).name}`)
    .option("--shadow", "with --preset or --yes: all rules only count and report, and reject nothing")
    .option("--force", "overwrite the file")
    .option("--json", "print JSON");
  examples(command, "init", "init --preset per-ip,login --shadow", "init rules/limits.yaml --framework hono --yes").action(
    (file: string, options: InitOptions) => init(io, file, options),
  );
}

async function init(io: Io, file: string, options: InitOptions): Promise<void> {
  if (file === "-" || file === "") throw new Failure("usage", "init writes a file. Name it: floodgate init limits.yaml.");
  if (sanitize(file) !== file)
    throw new Failure("usage", "the file's name has control characters. Write another: floodgate init limits.yaml.");
  if (existsSync(file) && statSync(file).isDirectory())
    throw new Failure("usage", `${file} is a directory. Name a file in it: floodgate init ${join(file, "limits.yaml")}.`);
  if (options.force !== true && existsSync(file)) {
    throw new Failure("refused", `${file} exists. Write --force to overwrite it, or name another file: floodgate init other.yaml.`);
  }
  const framework = frameworks.find(({ name }) => name === options.framework);
  const offered = presetsFor(framework);
  const chosen = options.preset ?? (options.yes === true ? offered.slice(0, 1) : undefined);
  const unfit = chosen?.find((preset) => !offered.includes(preset));
  if (unfit !== undefined) {
    const names = offered.map(({ name }) => name).join(",");
    throw new Failure("usage", `the preset ${unfit.name} is about HTTP requests. With --framework calls write --preset ${names}.`);
  }
  if (chosen === undefined && options.shadow === true)
    throw new Failure("usage", "--shadow is for --preset or --yes. Leave it out: init asks.");
  const wanted =
    chosen === undefined ? await ask(io, framework) : { rules: chosen.map(asOffered), isShadow: options.shadow === true, framework };
  const text = rulesFile(file, wanted.rules, wanted.isShadow, wanted.framework);
  const { rules } = parseRules(text, file);
  await writeText(file, text, options.force === true ? "w" : "wx");
  if (options.json === true) return io.out(json({ file, rules }));
  const isForCalls = wanted.framework?.isForCalls === true;
  const next = isForCalls ? "load it in your app, as it says" : `floodgate check ${file} --request "POST /login" --ip 203.0.113.9`;
  io.out(`${validRulesText(file, rules)}Next: ${next}\n`);
}

function asOffered(preset: Preset): ChosenRule {
  return { preset, limit: preset.limit, window: preset.window };
}

/** Asks on the terminal. The questions go to standard error, because standard output is for results. */
async function ask(io: Io, given: Framework | undefined): Promise<Wanted> {
  if (io.errTerminal === undefined) {
    throw new Failure("usage", "init asks questions, and this is not a terminal. Write --yes, or --preset per-ip,login.");
  }
  const { confirm, isCancel, multiselect, select, text } = await import("@clack/prompts");
  const streams = { input: io.input as Readable, output: io.errTerminal as Writable };
  const answered = <T>(answer: T): Exclude<T, symbol> => {
    if (isCancel(answer)) throw new Failure("refused", "nothing was written.");
    return answer as Exclude<T, symbol>;
  };
  const framework =
    given ??
    answered(
      await select({
        ...streams,
        message: "What is your app built with?",
        options: frameworks.map((framework) => ({ value: framework, label: framework.title, hint: framework.packages })),
      }),
    );
  const offered = presetsFor(framework);
  const names = answered(
    await multiselect({
      ...streams,
      message: "What do you want to limit?",
      options: offered.map(({ name, purpose }) => ({ value: name, label: purpose, hint: name })),
      initialValues: offered.slice(0, 1).map(({ name }) => name),
      required: true,
    }),
  );
  const rules: ChosenRule[] = [];
  for (const preset of offered.filter(({ name }) => names.includes(name))) {
    const usual = `${preset.limit}/${preset.window}`;
    const answer = await text({
      ...streams,
      message: `${preset.name}: how many requests in which time?`,
      placeholder: usual,
      defaultValue: usual,
      validate: (value = "") => (value === "" ? undefined : problemOf(value)),
    });
    rules.push({ preset, ...(rateOf(answered(answer)) as Rate) });
  }
  const isShadow = answered(
    await confirm({ ...streams, message: "Only count and report at first (shadow mode)? Nothing is rejected then.", initialValue: true }),
  );
  return { rules, isShadow, framework };
}

type Rate = Pick<ChosenRule, "limit" | "window">;

/** `100/1m`, or `100/m`. Undefined if the text is another. */
function rateOf(text: string): Rate | undefined {
  const [, limit, count, unit] = /^\s*(\d{1,9})\s*\/\s*(\d{0,8})(ms|s|m|h|d)\s*$/.exec(text) ?? [];
  return limit === undefined ? undefined : { limit: Number(limit), window: `${count === "" ? 1 : count}${unit}` };
}

/** What is wrong with an answer. Undefined if it can stand in a rule. */
function problemOf(text: string): string | undefined {
  const rate = rateOf(text);
  if (rate === undefined || rate.limit === 0) return "Write a number and a duration: 100/1m";
  try {
    slidingWindowCounter({ limit: rate.limit, window: rate.window as Duration });
    return undefined;
  } catch {
    return "No limit can be that. Write a duration above zero, such as 100/1m";
  }
}

function presetNames(list: string): readonly Preset[] {
  const names = new Set(list.split(",").map((name) => name.trim()));
  const chosen = presets.filter(({ name }) => names.delete(name));
  const [unknown] = names;
  if (unknown === undefined) return chosen;
  throw new InvalidArgumentError(
    `There is no preset ${JSON.stringify(unknown)}. The presets are ${presets.map(({ name }) => name).join(", ")}.`,
  );
}
