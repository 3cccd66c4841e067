import { createLimiter, type FloodgateEvent } from "@floodgate/core";
import { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { type DatabaseServer, startPgBouncer, startPostgres } from "../../../tools/test-servers/src/index.js";
import { databaseStore } from "../src/index.js";
import { postgres, postgresMigration } from "../src/postgres.js";
import { clientKillCase, patienceMs, raceCases, serverKillCase } from "./races.js";

let server: DatabaseServer;
let pool: Pool;

function connect(port: number, max = 4): Pool {
  const made = new Pool({ host: "127.0.0.1", port, user: "postgres", database: "postgres", max });
  // Connections break when the server is killed.
  made.on("error", () => undefined);
  return made;
}

beforeAll(async () => {
  server = await startPostgres();
  pool = connect(server.port);
  await pool.query(postgresMigration());
});
afterAll(async () => {
  await pool?.end();
  await server?.stop();
});

const limit = (name: string, most: number) => ({
  name,
  policy: { algorithm: "fixed-window" as const, limit: most, window: "365d" as const },
});
const patient = { timeoutMs: patienceMs, onStoreError: "deny" as const };
const target = () => ({ connection: { database: "postgres", port: server.port }, driver: postgres(pool) });

describe("Postgres", () => {
  raceCases(target, { most: allRuns ? undefined : 2 });

  it("is told of a missing table by an error that prints the SQL", async () => {
    const store = databaseStore(postgres(pool, { table: "nowhere" }));
    const errors: unknown[] = [];
    const limiter = createLimiter({
      ...limit("missing", 1),
      store,
      onEvent: (event) => event.type === "store-error" && errors.push(event.error),
    });
    expect(await limiter.consume("one")).toMatchObject({ degraded: true });
    expect(errors).toMatchObject([
      { code: "FLOODGATE_MISSING_TABLE", message: expect.stringContaining("CREATE TABLE IF NOT EXISTS nowhere (") },
    ]);
  });

  clientKillCase(target);
  serverKillCase(target, () => server);
});

describe.runIf(allRuns)("Postgres with serializable transactions", () => {
  const options = "-c default_transaction_isolation=serializable";
  raceCases(() => ({ connection: { database: "postgres", port: server.port, options }, driver: postgres(pool) }), { most: 1 });
});

describe.runIf(allRuns)("Postgres behind PgBouncer in transaction mode", () => {
  it("decides exactly, also with a client that prepares statements", { timeout: patienceMs }, async () => {
    const bouncer = await startPgBouncer(server);
    const pools = Array.from({ length: 3 }, () => connect(bouncer.port, 10));
    try {
      const errors: unknown[] = [];
      const onEvent = (event: FloodgateEvent) => void (event.type === "store-error" && errors.push(event.error));
      const limiters = pools.map((each) =>
        createLimiter({ ...limit("bounced", 300), store: databaseStore(postgres(each)), ...patient, onEvent }),
      );
      const asked = Array.from({ length: 600 }, (_, i) => limiters[i % 3]?.consume(`key-${i % 2}`));
      const decisions = await Promise.all(asked);
      expect(errors).toEqual([]);
      expect(decisions.filter((decision) => decision?.allowed)).toHaveLength(600);
      const many = Array.from({ length: 900 }, (_, i) => limiters[i % 3]?.consume("one"));
      expect((await Promise.all(many)).filter((decision) => decision?.allowed)).toHaveLength(300);
    } finally {
      await Promise.all(pools.map((each) => each.end()));
      await bouncer.stop();
    }
  });
});
