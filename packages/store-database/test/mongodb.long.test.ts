import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { fixedWindow } from "@floodgate/core";
import { createLimit } from "@floodgate/core/store";
import { buildSync } from "esbuild";
import { Aggregator } from "mingo";
import { MongoError } from "mongodb";
import { afterEach, expect, it } from "vitest";
import { type DatabaseDriver, databaseStore } from "../src/index.js";
import { suiteOf } from "./suite.js";

interface Document {
  readonly _id: string;
}

/** A transaction: what it has written, which nobody else sees before it is committed. */
class Session {
  readonly written = new Map<string, Document>();
  readonly #documents: Map<string, Document>;
  readonly #locks: Map<string, Session>;

  constructor(documents: Map<string, Document>, locks: Map<string, Session>) {
    this.#documents = documents;
    this.#locks = locks;
  }

  startTransaction(): void {}

  async commitTransaction(): Promise<void> {
    await turn();
    for (const [key, document] of this.written) this.#documents.set(key, document);
    await this.endSession();
  }

  async endSession(): Promise<void> {
    for (const key of this.written.keys()) this.#locks.delete(key);
    this.written.clear();
  }
}

/** What the driver of the page uses of MongoDB, with mingo's emulation of its language. A conflict of two transactions ends the later one. */
class Emulation {
  readonly documents = new Map<string, Document>();
  readonly #locks = new Map<string, Session>();
  conflicts = 0;

  startSession(): Session {
    return new Session(this.documents, this.#locks);
  }

  db() {
    return { collection: () => this, aggregate: (pipeline: object[]) => ({ toArray: () => this.#aggregate(pipeline) }) };
  }

  async findOneAndUpdate(
    { _id }: Document,
    update: object[],
    { upsert, projection, session }: { upsert: boolean; projection: object; session?: Session },
  ): Promise<unknown> {
    await turn();
    while (session === undefined && this.#locks.has(_id)) await turn();
    const holder = this.#locks.get(_id);
    if (holder !== undefined && holder !== session) {
      this.conflicts++;
      throw Object.assign(new MongoError("WriteConflict"), { hasErrorLabel: (label: string) => label === "TransientTransactionError" });
    }
    const before = session?.written.get(_id) ?? this.documents.get(_id);
    if (before === undefined && !upsert) return null;
    const [after] = this.#run(update, [before ?? { _id }]) as [Document];
    (session?.written ?? this.documents).set(_id, after);
    if (session !== undefined) this.#locks.set(_id, session);
    await turn();
    return this.#run([{ $project: projection }], [after])[0];
  }

  async #aggregate(pipeline: object[]): Promise<unknown[]> {
    await turn();
    return this.#run(pipeline, []);
  }

  #run(pipeline: object[], documents: object[]): unknown[] {
    return new Aggregator(pipeline as never, { collectionResolver: () => [...this.documents.values()] as never }).run(documents as never);
  }
}

const page = readFileSync(join(__dirname, "../../../docs/writing-a-store.md"), "utf8");
const [, contents = ""] = /```ts\n(\/\/ mongodb\.ts\n.*?)```/s.exec(page) ?? [];
const { outputFiles } = buildSync({ stdin: { contents, loader: "ts" }, format: "cjs", platform: "node", write: false });
const compiled: { exports: { mongodb: (client: unknown) => DatabaseDriver } } = { exports: {} as never };
new Function("module", "require", outputFiles[0]?.text as string)(compiled, createRequire(__filename));

const emulation = new Emulation();
const driver = compiled.exports.mongodb(emulation);
afterEach(() => emulation.documents.clear());

it("processes that charge the same keys in other orders are allowed exactly the limit", async () => {
  const limits = [20, 40].map((limit) => createLimit(`limit-${limit}`, fixedWindow({ limit, window: "365d" })));
  const asked = Array.from({ length: 60 }, async (_, i) => {
    const checks = limits.map((limit) => ({ limit, key: "one", cost: 1 }));
    const decisions = await databaseStore(driver).consumeAll(i % 2 === 0 ? checks : checks.reverse(), 60_000);
    return decisions.every(({ allowed }) => allowed);
  });
  expect((await Promise.all(asked)).filter((allowed) => allowed)).toHaveLength(20);
  expect(emulation.conflicts).toBeGreaterThan(0);
});

suiteOf("a store in an emulation of MongoDB", () => driver);
