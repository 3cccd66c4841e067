import { storeConformance } from "@floodgate/conformance";
import { startCluster, startRedis } from "@floodgate/test-servers";
import { afterAll, beforeAll, describe, it } from "vitest";
import { redisStore } from "../src/index.js";
import { type Connected, type LibraryName, libraries } from "./libraries.js";

let stores = 0;

/** Each of the newest libraries does all of the random runs. Others repeat a part of them here, and all in `npm run test:long`. */
const effortOf = (library: LibraryName, isNewest: boolean): number =>
  process.env["FLOODGATE_ALL_RUNS"] === "1" || (isNewest && library.endsWith(" 6")) ? 1 : 0.3;

/** The servers of a test file. */
interface Servers {
  stop(): Promise<void>;
}

/** Runs the suite. Each test gets its own prefix, which works like an empty Redis. */
function conforms<S extends Servers>(
  name: string,
  effort: number,
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
    { name, effort, makeStore: (clock) => redisStore(connected.client, { ...options, clock, prefix: `conformance-${stores++}` }) },
  );
}

/** Tests a client library on its own server. */
export function conformsOnRedis(library: LibraryName, binary?: string): void {
  conforms(
    `${library} on ${binary ?? "Redis"}`,
    effortOf(library, binary === undefined),
    () => startRedis(binary === undefined ? {} : { binary }),
    ({ port }) => libraries[library].connect(port),
  );
}

/** Tests a client library on its own Cluster. */
export function conformsOnCluster(library: LibraryName): void {
  conforms(
    `${library} on a Cluster`,
    effortOf(library, false),
    () => startCluster(),
    ({ nodes }) => libraries[library].connectCluster(nodes.map(({ port }) => port)),
  );
}
