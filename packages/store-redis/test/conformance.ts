import { type StoreGroup, storeConformance } from "@floodgate/conformance/store";
import { startCluster, startRedis } from "@floodgate/test-servers";
import { afterAll, beforeAll, describe, it } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { redisStore } from "../src/index.js";
import { type Connected, type StoreLibraryName, storeLibraries } from "./libraries.js";

let stores = 0;

/** Groups that test the scripts. On a Cluster only the way to them differs. */
const inLongRuns: readonly StoreGroup[] = [
  ...(["vectors", "algorithms", "large numbers", "accounts", "plans"] as const),
  ...(["refunds", "settle", "keyState", "holds"] as const),
];

/** Most random runs test the scripts, which all libraries and servers share: a few on one server suffice, and fewer elsewhere. */
const effortOf = (isCluster: boolean): number => (allRuns ? 1 : isCluster ? 0.05 : 0.1);

/** The servers of a test file. */
interface Servers {
  stop(): Promise<void>;
}

/** Runs the suite. Each test gets its own prefix, which works like an empty Redis. */
function conforms<S extends Servers>(
  name: string,
  isCluster: boolean,
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
      effort: effortOf(isCluster),
      leaveOut: Object.fromEntries((isCluster && !allRuns ? inLongRuns : []).map((group) => [group, "in long runs"])),
    },
  );
}

/** Tests a client library on its own server. */
export function conformsOnRedis(library: StoreLibraryName, binary?: string): void {
  conforms(
    `${library} on ${binary ?? "Redis"}`,
    false,
    () => startRedis(binary === undefined ? {} : { binary }),
    ({ port }) => storeLibraries[library].connect(port),
  );
}

/** Tests a client library on its own Cluster. */
export function conformsOnCluster(library: StoreLibraryName): void {
  conforms(
    `${library} on a Cluster`,
    true,
    () => startCluster({ replicasPerMaster: 0 }),
    ({ nodes }) => storeLibraries[library].connectCluster(nodes.map(({ port }) => port)),
  );
}
