import { FloodgateError } from "@floodgate/core";
import { checkOptions, type GrantChange } from "@floodgate/core/rules";
import { withGrant } from "./grant.js";
import { type LiveOptions, type LiveRules, startLive } from "./live.js";
import type { RulesOrigin } from "./origin.js";
import { parseAsync } from "./parse-async.js";
import { type RulesKey, type RulesRedis, rulesKey } from "./redis-client.js";

/**
 * Loads rules that `pushRules` wrote to a Redis key, and follows their changes. A second connection, `redis.duplicate()`, receives a
 * message for each new version. A poll every `pollMs` (default 5000) finds versions whose message was lost.
 * @throws FloodgateError `FLOODGATE_RULES_UNAVAILABLE` if the key holds no rules or Redis does not answer, `FLOODGATE_FOREIGN_VALUE` if
 * the key holds something else; RulesError if the rules are invalid.
 * @example
 * const rules = await redisRules(new Redis("redis://127.0.0.1:6379"), "floodgate:rules");
 */
export async function redisRules(redis: RulesRedis, key: string, options: LiveOptions = {}): Promise<LiveRules> {
  const stored = rulesKey("redisRules", redis, key);
  const origin: RulesOrigin = {
    source: key,
    revision: () => revisionOf(stored, key),
    async read() {
      const found = await textOf(stored, key);
      if (found !== undefined) return found;
      throw noRules(key);
    },
    watch: (changed) => stored.subscribe(changed),
  };
  const rules = await startLive("redisRules", origin, options);
  const grant = async (change: GrantChange): Promise<void> => {
    await grantPlan(redis, key, change);
    await rules.refresh();
    rules.reportGrant(change);
  };
  return Object.assign(rules, { grant });
}

/** Maximum number of retries of a grant because somebody else has pushed. */
const maxConflicts = 5;

/**
 * Gives a key of a rule another plan until a time, or ends its grant, in the rules under a Redis key. All processes that follow the key load
 * it. An app emits the event `granted` if it calls `rules.grant` in place of this function.
 * @returns the new version, or the present one if there was no grant to end.
 * @throws as `withGrant` and `pushRules`: a plan that the rule does not have is a RulesError.
 * @example
 * await grantPlan(redis, "floodgate:rules", { rule: "posts", key: "42", grant: { plan: "pro", until: "2027-01-31" } });
 */
export async function grantPlan(redis: RulesRedis, key: string, change: GrantChange): Promise<string> {
  rulesKey("grantPlan", redis, key);
  for (let conflicts = 0; ; conflicts++) {
    const found = await pullRules(redis, key);
    if (found === undefined) throw noRules(key);
    try {
      const changed = withGrant(found.text, change);
      // A new version makes every app load the rules anew.
      return changed === found.text ? found.version : await pushRules(redis, key, changed, { ifVersion: found.version });
    } catch (error) {
      const isConflict = error instanceof FloodgateError && error.code === "FLOODGATE_RULES_CONFLICT";
      if (!isConflict || conflicts === maxConflicts) throw error;
    }
  }
}

function noRules(key: string): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_RULES_UNAVAILABLE",
    `${key}: this Redis key holds no rules. Write some: floodgate push limits.yaml --rules-key ${key}, or await pushRules(redis, ${JSON.stringify(key)}, text).`,
  );
}

/** Reads the rules under a Redis key without checking them. `version` is `"0"` if none was written; undefined if there are no rules. */
export async function pullRules(redis: RulesRedis, key: string): Promise<{ text: string; version: string } | undefined> {
  const found = await textOf(rulesKey("pullRules", redis, key), key);
  return found && { text: found.text, version: found.version ?? "0" };
}

/**
 * Checks rules and writes them to a Redis key. All processes that follow the key load them.
 * @param options.ifVersion write only if this is the stored version (`"0"`: none yet), so that nobody's change is overwritten.
 * @returns the new version.
 * @throws RulesError if the rules are invalid; FloodgateError `FLOODGATE_RULES_CONFLICT` if another version is stored,
 * `FLOODGATE_RULES_UNAVAILABLE` if Redis does not answer, `FLOODGATE_FOREIGN_VALUE` if the key holds something else.
 */
export async function pushRules(redis: RulesRedis, key: string, text: string, options: { ifVersion?: string } = {}): Promise<string> {
  const stored = rulesKey("pushRules", redis, key);
  checkOptions("pushRules", options, ["ifVersion"], 'pushRules(redis, key, text, { ifVersion: "7" })');
  await parseAsync(text, key, true);
  const { ifVersion } = options;
  const condition = ifVersion === undefined ? [] : [`${ifVersion}`];
  const [outcome, found] = (await stored.command("eval", pushScript, "1", key, text, ...condition)) as [unknown, unknown];
  const version = String(found);
  if (String(outcome) === "pushed") return version;
  throw new FloodgateError(
    "FLOODGATE_RULES_CONFLICT",
    `${key}: the stored version is ${version}, not ${ifVersion}: somebody else has pushed. Pull the rules, make your change again, and push with ifVersion: "${version}".`,
  );
}

/**
 * Writes a hash: `version`, which each push increments, `rules`, the text, and `sha1`, its digest. It publishes the version on a channel
 * with the key's name. A Redis user without permission to publish can push too: then polls find the version.
 */
const pushScript = `
local version, rules = unpack(redis.call("HMGET", KEYS[1], "version", "rules"))
if not version and not rules and redis.call("EXISTS", KEYS[1]) == 1 then return redis.error_reply("NORULES") end
version = version or "0"
if ARGV[2] and ARGV[2] ~= version then return { "conflict", version } end
version = string.format("%.0f", redis.call("HINCRBY", KEYS[1], "version", 1))
redis.call("HSET", KEYS[1], "rules", ARGV[1], "sha1", redis.sha1hex(ARGV[1]))
redis.pcall("PUBLISH", KEYS[1], version)
return { "pushed", version }
`;

/** Includes the digest: a key that was deleted and pushed again may have the same version. */
async function revisionOf(stored: RulesKey, key: string): Promise<string | undefined> {
  const [version, sha1] = (await stored.command("hmget", key, "version", "sha1")) as [unknown, unknown];
  return isNil(version) ? undefined : `${version} ${sha1}`;
}

async function textOf(stored: RulesKey, key: string): Promise<{ text: string; version: string | undefined } | undefined> {
  const [version, text] = (await stored.command("hmget", key, "version", "rules")) as [unknown, unknown];
  if (isNil(text)) return undefined;
  return { text: String(text), version: isNil(version) ? undefined : String(version) };
}

function isNil(reply: unknown): boolean {
  return reply === null || reply === undefined;
}
