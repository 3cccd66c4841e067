import { type StoreGroup, storeConformance } from "@floodgate/conformance/store";
import { startCluster, startRedis } from "@floodgate/test-servers";
import { afterAll, beforeAll, describe, it } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { redisStore } from "../src/index.js";
import { type Connected, type StoreLibraryName, storeLibraries } from "./libraries.js";

let stores = 0;

/** Groups that test the scripts, which are the same on every server and runtime. */
const ofScripts: readonly StoreGroup[] = [
  ...(["vectors", "algorithms", "large numbers", "accounts", "plans"] as const),
  ...(["refunds", "settle", "keyState", "holds"] as const),
];

/** The servers of a test file. */
interface Servers {
  stop(): Promise<void>;
}

/**
 * Runs the suite. Each test gets its own prefix, which works like an empty Redis.
 * @param wayOnly whether only the way to the scripts is tested. Most random runs test the scripts.
 */
function conforms<S extends Servers>(
  name: string,
  wayOnly: boolean,
  start: () => Promise<S>,
  connect: (servers: S) => Promise<Connected>,
): void {
  let servers: S;
  let connected: Connected;
  beforeAll(async () => {
    servers = await start();
    connected = await connect(servers);
  });
  afterAll(async () => {
    // Close clients first: closing them after their servers have stopped can hang.
    await connected?.close();
    await servers?.stop();
  });
  const options = { denyCache: false } as const;
  storeConformance(
    { describe, it },
    {
      name,
      makeStore: (clock) => redisStore(connected.client, { ...options, clock, prefix: `conformance-${stores++}` }),
      effort: wayOnly ? 0.05 : allRuns ? 1 : 0.1,
      leaveOut: Object.fromEntries((wayOnly ? ofScripts : []).map((group) => [group, "it tests the scripts"])),
    },
  );
}

/** Tests a client library on its own server. */
export function conformsOnRedis(library: StoreLibraryName, binary?: string, wayOnly = false): void {
  conforms(
    `${library} on ${binary ?? "Redis"}`,
    wayOnly,
    () => startRedis(binary === undefined ? {} : { binary }),
    ({ port }) => storeLibraries[library].connect(port),
  );
}

/** Tests a client library on its own Cluster. */
export function conformsOnCluster(library: StoreLibraryName): void {
  conforms(
    `${library} on a Cluster`,
    !allRuns,
    () => startCluster({ replicasPerMaster: 0 }),
    ({ nodes }) => storeLibraries[library].connectCluster(nodes.map(({ port }) => port)),
  );
}
