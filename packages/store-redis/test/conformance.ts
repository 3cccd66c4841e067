import { storeConformance } from "@floodgate/conformance";
import { startCluster, startRedis } from "@floodgate/test-servers";
import { afterAll, beforeAll, describe, it } from "vitest";
import { redisStore } from "../src/index.js";
import { type Connected, type LibraryName, libraries } from "./libraries.js";

let stores = 0;

/** Servers of a test file's own. */
interface Servers {
  stop(): Promise<void>;
}

/** The suite on a store that a connection makes: with a prefix of its own in each case, which is as good as an empty Redis. */
function conforms<S extends Servers>(name: string, start: () => Promise<S>, connect: (servers: S) => Promise<Connected>): void {
  let servers: S;
  let connected: Connected;
  beforeAll(async () => {
    servers = await start();
    connected = await connect(servers);
  });
  afterAll(async () => {
    // In this order: to say farewell to servers that are gone can take for ever.
    await connected?.close();
    await servers?.stop();
  });
  const options = { denyCache: false } as const;
  storeConformance(
    { describe, it },
    { name, makeStore: (clock) => redisStore(connected.client, { ...options, clock, prefix: `conformance-${stores++}` }) },
  );
}

/** A client library on a server of its own. */
export function conformsOnRedis(library: LibraryName, binary?: string): void {
  conforms(
    `${library} on ${binary ?? "Redis"}`,
    () => startRedis(binary === undefined ? {} : { binary }),
    ({ port }) => libraries[library].connect(port),
  );
}

/** A client library on a Cluster of its own. */
export function conformsOnCluster(library: LibraryName): void {
  conforms(
    `${library} on a Cluster`,
    () => startCluster(),
    ({ nodes }) => libraries[library].connectCluster(nodes.map(({ port }) => port)),
  );
}
