import { parseRedisUrl } from "@floodgate/store-redis";
import { isUnix } from "./address.js";
import { type Command, flagOf, type Resolved, type Settings, table } from "./settings.js";

/** Mistakes that several settings make together. Each value is right by itself. */
export function conflicts(command: Command, { settings, origins }: Resolved): string[] {
  const problems: string[] = [];
  const given = (name: keyof Settings): string => `${flagOf(name)}${origins[name].startsWith("--") ? "" : ` (${origins[name]})`}`;
  const write = (name: keyof Settings): string => `Write ${flagOf(name)} ${table[name].example}.`;
  const add = (message: string): void => void problems.push(message);

  if (settings.rules === undefined && settings.rulesKey === undefined) {
    add(`There are no rules. ${write("rules")} Or, for rules in Redis: ${flagOf("rulesKey")} ${table.rulesKey.example}.`);
  }
  if (settings.rules !== undefined && settings.rulesKey !== undefined) {
    add(`${given("rules")} and ${given("rulesKey")} both say where the rules are. Remove one of them.`);
  }
  if (settings.redis === undefined) {
    for (const name of ["rulesKey", "redisPasswordFile"] as const) {
      if (settings[name] !== undefined) add(`${given(name)} needs the address of Redis. ${write("redis")}`);
    }
    if (settings.cluster) add(`${given("cluster")} needs the address of Redis. ${write("redis")}`);
  } else if (settings.cluster && parseRedisUrl(settings.redis)?.path !== undefined) {
    add(`${given("cluster")} needs host and port of a node, but ${given("redis")} is a Unix socket. ${write("redis")}`);
  }
  if (settings.dashboardActions && settings.adminTokenFile === undefined) {
    add(`${given("dashboardActions")} needs a password, so that not everyone on this machine may act. ${write("adminTokenFile")}`);
  }
  for (const name of ["listen", "rls"] as const) {
    if (!isUnix(settings[name] ?? "") || settings.trustedPeers.includes("unix")) continue;
    // Clients with certificates are trusted wherever they are.
    if (name === "rls" && settings.rlsClientCaFile !== undefined) continue;
    add(
      `${given(name)} is a Unix socket, whose peers have no address, and none of them is trusted to say the client's. Write ${flagOf("trustedPeers")} ${[...settings.trustedPeers, "unix"].join(",")}.`,
    );
  }
  for (const [name, other] of [
    ["rlsCertFile", "rlsKeyFile"],
    ["rlsKeyFile", "rlsCertFile"],
    ["rlsClientCaFile", "rlsCertFile"],
    ["rlsCertFile", "rls"],
  ] as const) {
    if (settings[name] !== undefined && settings[other] === undefined) add(`${given(name)} needs ${flagOf(other)}. ${write(other)}`);
  }
  if (command === "serve" && settings.presets?.length === 0 && settings.apiListen === undefined && settings.rls === undefined) {
    add(
      `${given("presets")} has no gateway, and nothing else listens. Write --presets nginx, --api-listen 127.0.0.1:8083 or --rls 127.0.0.1:8082.`,
    );
  }
  if (command === "gateway" && settings.upstream === undefined) add(`There is no server to pass requests to. ${write("upstream")}`);
  return problems;
}
