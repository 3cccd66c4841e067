import { FloodgateError } from "@floodgate/core";
import { checkOptions } from "@floodgate/core/rules";
import { readAside } from "./aside.js";
import { type Database, databaseOf, type RulesRedis } from "./client.js";
import type { RulesOrigin } from "./follow.js";
import { type LiveOptions, type LiveRules, startLive } from "./live.js";

/**
 * The rules under a key of Redis, as `pushRules` puts them there. A second connection, `redis.duplicate()`, hears of new versions
 * at once; every `pollMs` (default 5000) a look at the version makes up for what it has missed.
 * @throws FloodgateError `FLOODGATE_RULES_UNAVAILABLE` where there are none, or Redis does not answer, `FLOODGATE_FOREIGN_VALUE` where
 * the key holds something else, a RulesError where they are bad.
 */
export async function redisRules(redis: RulesRedis, key: string, options: LiveOptions = {}): Promise<LiveRules> {
  const database = databaseOf("redisRules", redis, key);
  const origin: RulesOrigin = {
    source: key,
    revision: () => revisionIn(database, key),
    async read() {
      const found = await rulesIn(database, key);
      if (found !== undefined) return found;
      throw new FloodgateError(
        "FLOODGATE_RULES_UNAVAILABLE",
        `${key}: there are no rules under this key of Redis. Put some there: await pushRules(redis, ${JSON.stringify(key)}, text).`,
      );
    },
    watch: (changed) => database.subscribe(changed),
  };
  return startLive("redisRules", origin, options);
}

/** The rules under a key as they are, good or bad, with their version (`"0"` where none was written); undefined where there are none. */
export async function pullRules(redis: RulesRedis, key: string): Promise<{ text: string; version: string } | undefined> {
  const found = await rulesIn(databaseOf("pullRules", redis, key), key);
  return found && { text: found.text, version: found.version ?? "0" };
}

/**
 * Puts rules under a key, for all that follow it, and answers their version. With `ifVersion` only where that is the version there
 * (`"0"`: none yet), so that nobody's work is overwritten.
 * @throws RulesError where the rules are bad; FloodgateError `FLOODGATE_RULES_CONFLICT` where the version is another,
 * `FLOODGATE_RULES_UNAVAILABLE` where Redis does not take them, `FLOODGATE_FOREIGN_VALUE` where the key holds something else.
 */
export async function pushRules(redis: RulesRedis, key: string, text: string, options: { ifVersion?: string } = {}): Promise<string> {
  const database = databaseOf("pushRules", redis, key);
  checkOptions("pushRules", options, ["ifVersion"], 'pushRules(redis, key, text, { ifVersion: "7" })');
  await readAside(text, key, true);
  const { ifVersion } = options;
  const condition = ifVersion === undefined ? [] : [`${ifVersion}`];
  const [outcome, there] = (await database.command("eval", pushScript, "1", key, text, ...condition)) as [unknown, unknown];
  const version = String(there);
  if (String(outcome) === "pushed") return version;
  throw new FloodgateError(
    "FLOODGATE_RULES_CONFLICT",
    `${key}: the rules were to replace version ${ifVersion}, but are version ${version} by now. Pull them, make the change there, and push with ifVersion: "${version}".`,
  );
}

/**
 * A hash: `version` is raised by each push, `rules` is the text, `sha1` its digest. The new version is published on a channel of the
 * key's name, if the user of Redis may: what is written is in force at the next poll all the same.
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

/** With the digest: a key that was deleted and filled anew may be at the same version. */
async function revisionIn(database: Database, key: string): Promise<string | undefined> {
  const [version, sha1] = (await database.command("hmget", key, "version", "sha1")) as [unknown, unknown];
  return isNothing(version) ? undefined : `${version} ${sha1}`;
}

async function rulesIn(database: Database, key: string): Promise<{ text: string; version: string | undefined } | undefined> {
  const [version, text] = (await database.command("hmget", key, "version", "rules")) as [unknown, unknown];
  if (isNothing(text)) return undefined;
  return { text: String(text), version: isNothing(version) ? undefined : String(version) };
}

function isNothing(reply: unknown): boolean {
  return reply === null || reply === undefined;
}
