import { type Duration, parseDuration } from "@floodgate/core";
import type { GrantChange } from "@floodgate/core/rules";
import { grantPlan, RulesError, withGrant } from "@floodgate/rules";
import type { Command } from "commander";
import { Failure } from "../failure.js";
import type { Io } from "../io.js";
import { readText, validRules, writeText } from "../load-rules.js";
import { durationOption, examples, matching } from "../options.js";
import { localTime } from "../output/format.js";
import { json, sanitize } from "../output/terminal.js";
import { type TargetOptions, targetOptions, withTarget } from "../target.js";

interface GrantOptions extends TargetOptions {
  readonly until?: string;
  readonly for?: Duration;
}

const instant = matching(
  /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d))?$/,
  "It must be a date, or a time with its zone: 2027-01-31 or 2027-01-31T18:00:00Z.",
);

export function addGrant(program: Command, io: Io): void {
  const command = program
    .command("grant")
    .description("Give a key another plan of a rule until a time. Writes the rules, in Redis or in the file; what the key has used stays.")
    .option("--until <time>", "when it ends: 2027-01-31 (midnight in UTC), or 2027-01-31T18:00:00Z", instant)
    .option("--for <duration>", "how long, in place of --until: 1d, 30d", durationOption);
  examples(
    targetOptions(command, "the plan: one of the rule's plans"),
    "grant --rule posts --key 42 --plan pro --for 30d --redis redis://127.0.0.1:6379",
    "grant --rule posts --key 42 --plan pro --until 2027-01-31 --file limits.yaml --redis redis://127.0.0.1:6379",
  ).action((options: GrantOptions) => {
    const { plan, until, for: length } = options;
    if (plan === undefined) throw new Failure("usage", "say which plan the key has: --plan pro.");
    if ((until === undefined) === (length === undefined)) throw new Failure("usage", "say when it ends: --until 2027-01-31, or --for 30d.");
    const end =
      until ?? new Date(Math.ceil((Date.now() + parseDuration(length as Duration)) / 1000) * 1000).toISOString().replace(".000", "");
    if (Date.parse(end) <= Date.now()) throw new Failure("usage", `--until ${end} is in the past. To end a grant, use floodgate revoke.`);
    return change(io, options, { plan, until: end });
  });
}

export function addRevoke(program: Command, io: Io): void {
  const command = program
    .command("revoke")
    .description("End what floodgate grant gave to a key. Writes the rules, in Redis or in the file.");
  examples(targetOptions(command), "revoke --rule posts --key 42 --redis redis://127.0.0.1:6379").action((options: GrantOptions) =>
    change(io, options, undefined),
  );
}

function change(io: Io, options: GrantOptions, grant: GrantChange["grant"]): Promise<void> {
  if (options.policy !== undefined) throw new Failure("usage", "a limit that is defined in code has no grants: they stand in the rules.");
  // The rules say themselves whether they have the plan.
  const { plan: _, ...target } = options;
  return withTarget(io, target, async ({ keyText, rule: { name: rule } }, redis) => {
    const made = { rule, key: keyText, grant };
    const { file, rulesKey } = options;
    const where =
      file === undefined
        ? { rulesKey, version: await pushed(() => grantPlan(redis, rulesKey, made)) }
        : await written(io, file, options, made);
    if (options.json === true) io.out(json({ rule, key: keyText, plan: grant?.plan ?? null, until: grant?.until ?? null, ...where }));
    else {
      const what = grant === undefined ? "no grant" : `plan ${grant.plan} until ${localTime(Date.parse(grant.until))}`;
      const place = "version" in where ? `${where.rulesKey}: version ${where.version}` : `${where.file} is written`;
      io.out(`${sanitize(`${rule}, key ${keyText}: ${what}`)}\n${sanitize(place)}\n`);
    }
  });
}

async function pushed(push: () => Promise<string>): Promise<string> {
  try {
    return await push();
  } catch (error) {
    if (!(error instanceof RulesError)) throw error;
    throw new Failure("refused", (error.problems[0] ?? error).message, { cause: error });
  }
}

async function written(io: Io, file: string, options: GrantOptions, made: GrantChange): Promise<{ file: string }> {
  if (file === "-") throw new Failure("usage", "a grant is written into the file, so --file must name one.");
  const { text, name } = await readText(io, file);
  const changed = withGrant(text, made);
  validRules(io, changed, name, options);
  await writeText(file, changed);
  return { file };
}
