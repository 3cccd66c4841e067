import { storeConformance } from "@floodgate/conformance";
import { startCluster, startRedis } from "@floodgate/test-servers";
import { afterAll, beforeAll, describe, it } from "vitest";
import { redisStore } from "../src/index.js";
import { type Connected, type LibraryName, libraries } from "./libraries.js";

let stores = 0;

/** The servers of a test file. */
interface Servers {
  stop(): Promise<void>;
}

/** Runs the suite. Each test gets its own prefix, which works like an empty Redis. */
function conforms<S extends Servers>(name: string, start: () => Promise<S>, connect: (servers: S) => Promise<Connected>): void {
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
    { name, makeStore: (clock) => redisStore(connected.client, { ...options, clock, prefix: `conformance-${stores++}` }) },
  );
}

/** Tests a client library on its own server. */
export function conformsOnRedis(library: LibraryName, binary?: string): void {
  conforms(
    `${library} on ${binary ?? "Redis"}`,
    () => startRedis(binary === undefined ? {} : { binary }),
    ({ port }) => libraries[library].connect(port),
  );
}

/** Tests a client library on its own Cluster. */
export function conformsOnCluster(library: LibraryName): void {
  conforms(
    `${library} on a Cluster`,
    () => startCluster(),
    ({ nodes }) => libraries[library].connectCluster(nodes.map(({ port }) => port)),
  );
}
