import type { Command } from "commander";
import { Failure } from "../failure.js";
import type { Io } from "../io.js";
import { examples, type JsonOption, type NamesOptions, namesOptions } from "../options.js";
import { explained, explanationText } from "../output/explanation.js";
import { validRulesText } from "../output/format.js";
import { json } from "../output/terminal.js";
import { explain, type RequestOptions, requestOptions } from "../request.js";
import { fileRulesOf } from "../rules/rules-in-force.js";

interface CheckOptions extends NamesOptions, RequestOptions, JsonOption {}

export function addCheck(program: Command, io: Io): void {
  const command = program
    .command("check")
    .description("Check a rules file for mistakes, or show which rules count a request.")
    .argument("<file>", "YAML or JSON; - for standard input");
  namesOptions(command);
  requestOptions(command, 'show which rules count this request: "POST /posts"', "the value of one of the app's keys (repeatable)").option(
    "--json",
    "print JSON",
  );
  examples(
    command,
    "check limits.yaml",
    "check limits.yaml --keys user,tenant --costs tokens",
    'check limits.yaml --request "POST /posts" --ip 203.0.113.9 --key user=42 --plan pro',
  ).action((file: string, options: CheckOptions) => check(io, file, options));
}

async function check(io: Io, file: string, options: CheckOptions): Promise<void> {
  const { request: line } = options;
  if (line === undefined) refuseRequestOptions(options);
  const { set, name } = await fileRulesOf(io, file, options);
  const request = line === undefined ? undefined : explained(set, await explain(io, set, options, line));
  if (options.json === true) return io.out(json({ file: name, rules: set.rules.length, problems: [], ...(request && { request }) }));
  const explanation = line === undefined || request === undefined ? "" : `\n${explanationText(io, line, request)}`;
  io.out(validRulesText(name, set.rules) + explanation);
}

/** @throws Failure if an option describes a request but `--request` is missing. */
function refuseRequestOptions(options: CheckOptions): void {
  const option = (["ip", "key", "header", "route", "plan"] as const).find((name) => options[name] !== undefined);
  if (option === undefined) return;
  throw new Failure("usage", `--${option} describes a request, but --request is missing. Add --request "POST /posts".`);
}
