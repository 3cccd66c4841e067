import { RuleExplainer, type RuleSet } from "@floodgate/core/rules";
import type { Command } from "commander";
import { appOptions, askedReader } from "../app.js";
import { Failure } from "../failure.js";
import type { Io } from "../io.js";
import { each, examples, ipv6PrefixOption, type NamesOptions, namesOptions } from "../options.js";
import { type ExplainedRule, explained, explanationText } from "../output/explanation.js";
import { json } from "../output/terminal.js";
import { soundWords } from "../output/words.js";
import { notePlan } from "../plan.js";
import { type RequestOptions, requestOf } from "../request.js";
import { judge, problemsIn, readText, soundRules } from "../rules-text.js";

interface CheckOptions extends NamesOptions, RequestOptions {
  readonly request?: string;
  readonly plan?: string;
  readonly json?: true;
}

export function addCheck(program: Command, io: Io): void {
  const command = program
    .command("check")
    .description("Look for what is wrong in a file of rules, or for the rules that a request meets.")
    .argument("<file>", "YAML or JSON; - for standard input");
  namesOptions(command);
  command
    .option("--request <line>", 'ask which rules are for a request: "POST /posts"')
    .option("--ip <address>", "the request's client address")
    .option("--key <name=value>", "what a key of the app answers for it (repeatable)", each)
    .option("--header <name: value>", "one of its headers (repeatable)", each)
    .option("--route <pattern>", "the route that it meets in the app, for rules that count by it")
    .option("--plan <name>", "its plan");
  ipv6PrefixOption(command).option("--json", "print JSON");
  examples(
    command,
    "check limits.yaml",
    "check limits.yaml --keys user,tenant --costs tokens",
    'check limits.yaml --request "POST /posts" --ip 203.0.113.9 --key user=42 --plan pro',
  ).action((file: string, options: CheckOptions) => check(io, file, options));
}

async function check(io: Io, file: string, options: CheckOptions): Promise<void> {
  if (options.request === undefined) refuseParts(options);
  const { text, name } = await readText(io, file);
  if (options.json === true) return checkToJson(io, text, name, options);
  const set = soundRules(io, text, name, options);
  const asked =
    options.request === undefined ? "" : `\n${explanationText(io, options.request, await explain(io, set, options, options.request))}`;
  io.out(soundWords(name, set.rules) + asked);
}

/** @throws Failure where there are parts of a request, and no request. */
function refuseParts(options: CheckOptions): void {
  const part = (["ip", "key", "header", "route", "plan"] as const).find((word) => options[word] !== undefined);
  if (part === undefined) return;
  throw new Failure("usage", `--${part} tells of a request, and there is none. Write --request "POST /posts" before it.`);
}

async function checkToJson(io: Io, text: string, file: string, options: CheckOptions): Promise<void> {
  const { rules: set, problems } = judge(text, file, options);
  const request = set && options.request !== undefined ? { request: await explain(io, set, options, options.request) } : {};
  io.out(json({ file, rules: set?.rules.length ?? null, problems, ...request }));
  if (set === undefined) throw problemsIn(file, problems);
}

async function explain(io: Io, set: RuleSet, options: CheckOptions, line: string): Promise<ExplainedRule[]> {
  notePlan(io, options.plan, set.rules);
  const rules = new RuleExplainer("check", set, appOptions(set, options), askedReader);
  return explained(set, await rules.explain(requestOf(line, options, set)));
}
