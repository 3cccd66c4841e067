import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { aptInstall } from "./apt.js";

let redis: Promise<string> | undefined;
let valkey: Promise<string | undefined> | undefined;

/**
 * The program that `startRedis` runs: redis-server from the PATH, else installed where this process may (as root, or in CI).
 * @throws Error that says what to install.
 */
export function redisServer(): Promise<string> {
  redis ??= serverOf("redis").catch((error: Error) => {
    throw new Error(
      `There is no redis-server on the PATH, and ${error.message}. Install it: apt-get install redis-server, or brew install redis.`,
    );
  });
  return redis;
}

/** Likewise valkey-server, for `startRedis({ binary })`; undefined, and a warning that says why, where it cannot be had. */
export function valkeyServer(): Promise<string | undefined> {
  valkey ??= serverOf("valkey").catch((error: Error) => {
    process.emitWarning(`There is no valkey-server on the PATH, and ${error.message}: what needs it is left out.`);
    return undefined;
  });
  return valkey;
}

/** Those of both that can be had, for tests that say the same of each. */
export async function availableServers(): Promise<{ name: "Redis" | "Valkey"; binary: string }[]> {
  const binary = await valkeyServer();
  return [{ name: "Redis", binary: await redisServer() }, ...(binary === undefined ? [] : [{ name: "Valkey" as const, binary }])];
}

async function serverOf(kind: "redis" | "valkey"): Promise<string> {
  const known = find(kind);
  if (known !== undefined) return known;
  await aptInstall(`${kind}-tools`);
  const installed = find(kind);
  if (installed === undefined) throw new Error(`the package ${kind}-tools has none`);
  return installed;
}

/**
 * The package of tools holds the server too, under the name of a checker, and no service that installing it would start.
 * Which of both it is, the program tells by the name that it is run by.
 */
function find(kind: string): string | undefined {
  return onPath(`${kind}-server`) ?? onPath(`${kind}-check-rdb`);
}

function onPath(name: string): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
}
