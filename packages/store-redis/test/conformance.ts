import { storeConformance } from "@floodgate/conformance";
import { type RedisCluster, type RedisServer, startCluster, startRedis } from "@floodgate/test-servers";
import { afterAll, beforeAll, describe, it } from "vitest";
import { redisStore } from "../src/index.js";
import { type Connected, type LibraryName, libraries } from "./libraries.js";

let stores = 0;

/** The suite on a store that a connection makes: with a prefix of its own in each case, which is as good as an empty Redis. */
function conforms(name: string, connect: () => Promise<Connected>): void {
  let connected: Connected;
  beforeAll(async () => {
    connected = await connect();
  });
  afterAll(() => connected?.close());
  const options = { denyCache: false } as const;
  storeConformance(
    { describe, it },
    { name, makeStore: (clock) => redisStore(connected.client, { ...options, clock, prefix: `conformance-${stores++}` }) },
  );
}

/** A client library on a server of its own. */
export function conformsOnRedis(library: LibraryName, binary?: string): void {
  let server: RedisServer;
  conforms(`${library} on ${binary ?? "Redis"}`, async () => {
    server = await startRedis(binary === undefined ? {} : { binary });
    return libraries[library].connect(server.port);
  });
  afterAll(() => server?.stop());
}

/** A client library on a Cluster of its own. */
export function conformsOnCluster(library: LibraryName): void {
  let cluster: RedisCluster;
  conforms(`${library} on a Cluster`, async () => {
    cluster = await startCluster();
    return libraries[library].connectCluster(cluster.nodes.map(({ port }) => port));
  });
  afterAll(() => cluster?.stop());
}
