import { onPath, program } from "./program.js";

let redis: Promise<string> | undefined;
let valkey: Promise<string | undefined> | undefined;

/**
 * The program that `startRedis` runs: redis-server from the PATH, else installed if possible (as root, or in CI).
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

/** The same for valkey-server, for `startRedis({ binary })`. Undefined, with a warning that says why, if it is not available. */
export function valkeyServer(): Promise<string | undefined> {
  valkey ??= serverOf("valkey").catch((error: Error) => {
    process.emitWarning(`There is no valkey-server on the PATH, and ${error.message}: what needs it is left out.`);
    return undefined;
  });
  return valkey;
}

/** The available ones of both, for tests that run on each. */
export async function availableServers(): Promise<{ name: "Redis" | "Valkey"; binary: string }[]> {
  const binary = await valkeyServer();
  return [{ name: "Redis", binary: await redisServer() }, ...(binary === undefined ? [] : [{ name: "Valkey" as const, binary }])];
}

function serverOf(kind: "redis" | "valkey"): Promise<string> {
  return program(() => find(kind), `${kind}-tools`);
}

/**
 * The tools package contains the server too, as a checker, and starts no service when installed. The program behaves as server or
 * checker by the name that it is run under.
 */
function find(kind: string): string | undefined {
  return onPath(`${kind}-server`, `${kind}-check-rdb`);
}
