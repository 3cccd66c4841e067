import { createLimiter, type FloodgateEvent, fixedWindow } from "@floodgate/core";
import { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { type DatabaseServer, startPgBouncer, startPostgres } from "../../../tools/test-servers/src/index.js";
import { databaseStore } from "../src/index.js";
import { postgres, postgresMigration } from "../src/postgres.js";
import { patienceMs, raceCases, Worker } from "./races.js";

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
const used = async (name: string, most: number): Promise<number> => {
  const store = databaseStore(postgres(pool));
  const decision = await createLimiter({ ...limit(name, most), store, ...patient }).peek("one");
  expect(decision.degraded).toBe(false);
  return decision.used;
};

describe("Postgres", () => {
  raceCases(() => ({ connection: { database: "postgres", port: server.port }, driver: postgres(pool) }), allRuns ? undefined : 2);

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

  it("counts each request that passed, after a client was killed while it wrote", { timeout: patienceMs }, async () => {
    const worker = new Worker();
    await worker.answer();
    const race = {
      database: "postgres",
      port: server.port,
      limit: limit("killed-client", 100_000),
      requests: 100_000,
      inFlight: 8,
      tell: true,
    };
    await worker.ask(race);
    worker.process.send("go");
    let told = 0;
    worker.process.on("message", (message: { allowed: number }) => {
      told = message.allowed;
      if (told === 500) worker.process.kill("SIGKILL");
    });
    await new Promise((resolve) => worker.process.once("exit", resolve));
    const counted = await used("killed-client", 100_000);
    expect(counted).toBeGreaterThanOrEqual(told);
    // What was in flight may be counted too.
    expect(counted - told).toBeLessThanOrEqual(64);
  });

  it("counts each request that passed, after the server was killed while it wrote, and decides again when it is back", {
    timeout: patienceMs,
  }, async () => {
    const most = 100_000;
    const store = databaseStore(postgres(connect(server.port)));
    const limiter = createLimiter({ name: "killed-server", policy: fixedWindow({ limit: most, window: "365d" }), store, ...patient });
    let allowed = 0;
    let asked = 0;
    let failed = 0;
    const askInTurn = async (): Promise<void> => {
      while (failed === 0) {
        asked++;
        const decision = await limiter.consume("one");
        if (decision.degraded) failed++;
        else if (decision.allowed) allowed++;
      }
    };
    const asking = Array.from({ length: 8 }, askInTurn);
    while (allowed < 200) await new Promise((resolve) => setTimeout(resolve, 5));
    await server.kill();
    await Promise.all(asking);
    await server.restart();
    const counted = await used("killed-server", most);
    expect(counted).toBeGreaterThanOrEqual(allowed);
    expect(counted).toBeLessThanOrEqual(asked);
  });
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
