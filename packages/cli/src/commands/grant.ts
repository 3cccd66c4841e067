import { type Duration, parseDuration } from "@floodgate/core";
import type { GrantChange } from "@floodgate/core/rules";
import { grantPlan, RulesError, withGrant } from "@floodgate/rules";
import type { Command } from "commander";
import { Failure } from "../failure.js";
import { readText, writeText } from "../files.js";
import type { Io } from "../io.js";
import { durationOption, examples, matching } from "../options.js";
import { localTime } from "../output/format.js";
import { json, sanitize } from "../output/terminal.js";
import { type RuleAndKey, ruleAndKeyInFile, type TargetOptions, targetOptions, withTarget } from "../redis/target.js";
import { validRules } from "../rules/valid-rules.js";

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
    "grant --rule posts --key 42 --plan pro --until 2027-01-31 --file limits.yaml",
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

async function change(io: Io, options: GrantOptions, grant: GrantChange["grant"]): Promise<void> {
  const { policy, file, rulesKey } = options;
  if (policy !== undefined) throw new Failure("usage", "a limit that is defined in code has no grants: they stand in the rules.");
  if (file === "-") throw new Failure("usage", "a grant is written into the file, so --file must name one.");
  // The rules say themselves whether they have the plan.
  const { plan: _, ...target } = options;
  const tell = ({ rule, keyText: key }: RuleAndKey, place: string, where: object): void => {
    if (options.json === true) io.out(json({ rule: rule.name, key, plan: grant?.plan ?? null, until: grant?.until ?? null, ...where }));
    else {
      const what = grant === undefined ? "no grant" : `plan ${grant.plan} until ${localTime(Date.parse(grant.until))}`;
      io.out(`${sanitize(`${rule.name}, key ${key}: ${what}`)}\n${sanitize(place)}\n`);
    }
  };
  if (file !== undefined) {
    const found = await ruleAndKeyInFile(io, target, file);
    await write(io, file, options, changeOf(found, grant));
    return tell(found, `${file} is written`, { file });
  }
  return withTarget(io, target, async (found, redis) => {
    const version = await grantPlan(redis, rulesKey, changeOf(found, grant)).catch(refuse);
    tell(found, `${rulesKey}: version ${version}`, { rulesKey, version });
  });
}

/** @throws Failure if there is no grant to end: the key may be misspelt. */
function changeOf({ keyText, plainRule, rule }: RuleAndKey, grant: GrantChange["grant"]): GrantChange {
  const change: GrantChange = { rule: rule.name, key: keyText, grant, textOf: (written) => rule.keyText(written) };
  // Grants that are over count too.
  if (grant !== undefined || plainRule.grants?.some(({ key }) => rule.keyText(key) === keyText)) return change;
  throw new Failure("refused", `key ${JSON.stringify(keyText)} has no grant under ${JSON.stringify(rule.name)}. Nothing was changed.`);
}

function refuse(error: unknown): never {
  if (!(error instanceof RulesError)) throw error;
  throw new Failure("refused", (error.problems[0] ?? error).message, { cause: error });
}

async function write(io: Io, file: string, options: GrantOptions, change: GrantChange): Promise<void> {
  const { text, name } = await readText(io, file);
  const changed = withGrant(text, change);
  validRules(io, changed, name, options);
  await writeText(file, changed);
}
