import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { build, type Plugin } from "esbuild";
import { Miniflare } from "miniflare";
import { describe, expect, it } from "vitest";
import { storeConformance } from "../../conformance/src/store.js";
import type { DatabaseDriver, Loaded, Row, Swapped } from "../src/index.js";
import { patienceMs, policies } from "./races.js";

/** Starts Deno, which keeps its caches in `folder`. */
export function runDeno(folder: string, args: readonly string[]): ChildProcessByStdio<null, Readable, null> {
  const env = { ...process.env, DENO_DIR: folder, DENO_NO_UPDATE_CHECK: "1", NO_COLOR: "1" };
  return spawn(join(__dirname, "../node_modules/deno/deno"), args, { env, stdio: ["ignore", "pipe", "inherit"] });
}

/** The runtime warns of requests that ended before others which had waited with them. */
function handleRuntimeStdio(...outputs: { resume(): void }[]): void {
  for (const output of outputs) output.resume();
}

/** The worked examples that the suite reads. A Worker has no files. */
const vectors: Plugin = {
  name: "vectors",
  setup(building) {
    const folder = join(__dirname, "../../conformance/vectors");
    const files = readdirSync(folder).map((name) => [`/vectors/${name}`, readFileSync(join(folder, name), "utf8")]);
    const contents = `const files = new Map(${JSON.stringify(files)}); export const readFileSync = (path) => files.get(path);`;
    building.onResolve({ filter: /^node:fs$/ }, () => ({ path: "vectors", namespace: "vectors" }));
    building.onLoad({ filter: /^/, namespace: "vectors" }, () => ({ contents }));
  },
};

/** Bundles a Worker as wrangler does, with the packages' sources. */
export async function bundled(entry: { readonly file: string } | { readonly code: string }): Promise<string> {
  const { outputFiles } = await build({
    ...("file" in entry ? { entryPoints: [entry.file] } : { stdin: { contents: entry.code, resolveDir: __dirname } }),
    bundle: true,
    format: "esm",
    external: ["cloudflare:*", "node:*"],
    conditions: ["@floodgate/source", "workerd"],
    define: { __dirname: '"/a/b"' },
    loader: { ".lua": "text" },
    plugins: [vectors],
    write: false,
    logLevel: "silent",
  });
  return (outputFiles[0] as { text: string }).text;
}

/** Starts workerd with a Worker's code in several isolates, which share one D1 database and one namespace of Durable Objects. */
export function runtime(code: string, names: readonly string[], compatibilityFlags: string[] = [], folder?: string): Miniflare {
  const workers = names.map((name) => ({
    name,
    compatibilityDate: "2026-06-01",
    compatibilityFlags,
    modules: [{ type: "ESModule" as const, path: "worker.mjs", contents: code }],
    d1Databases: { DB: "limits" },
    durableObjects: { FLOODGATE: { className: "FloodgateObject", scriptName: names[0] as string, useSQLite: true } },
  }));
  const saved = folder === undefined ? {} : { d1Persist: join(folder, "d1"), durableObjectsPersist: join(folder, "objects") };
  return new Miniflare({ workers, ...saved, handleRuntimeStdio });
}

type Isolate = (url: string, init: { method: string; body: string }) => Promise<Response>;

/** `worker.mjs` in several isolates or processes. */
export class Workers {
  readonly #isolates: readonly Isolate[];
  readonly stop: () => Promise<void>;

  private constructor(isolates: readonly Isolate[], stop: () => Promise<void>) {
    this.#isolates = isolates;
    this.stop = stop;
  }

  /** Isolates of Cloudflare's runtime. */
  static async start(isolates: number, folder?: string): Promise<Workers> {
    const code = await bundled({ file: join(__dirname, "cloudflare-worker.mjs") });
    const names = Array.from({ length: isolates }, (_, i) => `worker-${i}`);
    const miniflare = runtime(code, names, ["nodejs_compat"], folder);
    const fetchers = await Promise.all(names.map((name) => miniflare.getWorker(name)));
    const started = new Workers(
      fetchers.map((fetcher) => (url, init) => (fetcher as unknown as { fetch: Isolate }).fetch(url, init)),
      () => miniflare.dispose(),
    );
    await started.ask("d1/migrate");
    return started;
  }

  /** Processes of Deno on one file. They end at once. */
  static async startDeno(processes: number, folder: string): Promise<Workers> {
    const file = join(folder, "worker.mjs");
    writeFileSync(file, await bundled({ file: join(__dirname, "deno-worker.mjs") }));
    const args = ["run", "--no-config", "--allow-all", "--unstable-kv", file, join(folder, "kv")];
    const started = Array.from({ length: processes }, () => runDeno(folder, args));
    const ended = Promise.all(started.map((child) => once(child, "exit")));
    const isolates = started.map(async ({ stdout }): Promise<Isolate> => {
      const [port] = await Promise.race([once(stdout, "data"), ended.then(() => Promise.reject(new Error("Deno has ended.")))]);
      return (url, init) => fetch(url.replace("localhost", `127.0.0.1:${Number(port)}`), init);
    });
    return new Workers(await Promise.all(isolates), async () => {
      for (const child of started) child.kill("SIGKILL");
      await ended;
    });
  }

  get count(): number {
    return this.#isolates.length;
  }

  /** What an isolate answers. */
  async ask(path: string, question: unknown = null, isolate = 0): Promise<unknown> {
    const fetch = this.#isolates[isolate % this.#isolates.length] as Isolate;
    const response = await fetch(`http://localhost/${path}`, { method: "POST", body: JSON.stringify(question) });
    const answer = (await response.json()) as { message?: string };
    if (!response.ok) throw Object.assign(new Error(answer.message), answer);
    return answer;
  }

  /** A driver that runs in the Worker. */
  driver(database: string): DatabaseDriver {
    const ask = async (call: string, question: unknown): Promise<Loaded & Swapped> => {
      const answer = (await this.ask(`${database}/${call}`, question)) as { done: boolean; nowMs: number; rows: (Row | null)[] };
      return { ...answer, rows: answer.rows.map((row) => row ?? undefined) };
    };
    return {
      load: (keys): Promise<Loaded> => ask("load", keys),
      swap: (changes, valid) => ask("swap", { changes, valid }),
      sweep: (most) => this.ask(`${database}/sweep`, most),
    };
  }
}

/** Runs the suite of stores in a Worker. Each test is a request. */
export function suiteInWorker(name: string, workers: () => Workers, database: string, effort: number): void {
  let tests = 0;
  const inWorker = (title: string, _: unknown, timeoutMs = 0): void => {
    const index = tests++;
    // The simulators of D1 and of Durable Objects are slow.
    it(title, { timeout: 3 * timeoutMs }, async () => void (await workers().ask(`${database}/test`, { index, effort })));
  };
  const makeStore = (): never => {
    throw new Error("The store is in the Worker.");
  };
  storeConformance({ describe, it: Object.assign(inWorker, { skip: it.skip }) }, { name, makeStore });
}

interface Counts {
  readonly allowed: number;
  readonly degraded: number;
}

/** A limit of a year, under a name of its own. */
export const fixed = (limit: number, name: string) => ({ name, policy: { algorithm: "fixed-window", limit, window: "365d" } });

/** Lets the isolates decide in turn, all at once, and counts their decisions. */
export async function consume(workers: Workers, database: string, questions: readonly object[]): Promise<Counts> {
  const answers = (await Promise.all(questions.map((question, i) => workers.ask(`${database}/consume`, question, i)))) as Counts[];
  const sum = (name: keyof Counts): number => answers.reduce((total, answer) => total + answer[name], 0);
  return { allowed: sum("allowed"), degraded: sum("degraded") };
}

/** Lets isolates decide at the same time, and compares them with a memory store. */
export function raceCasesOf(workers: () => Workers, database: string): void {
  it.each(policies.map((policy, i) => ({ name: `race-${i}`, policy })))(
    "eight clients with 2000 requests each are allowed exactly 5000: $policy",
    { timeout: patienceMs },
    async (limit) => {
      const questions = Array.from({ length: 8 }, () => ({ limit, times: 2000 }));
      expect(await consume(workers(), database, questions)).toEqual({ allowed: 5000, degraded: 0 });
    },
  );

  it("a request that is over before its decision holds up no other", { timeout: patienceMs }, async () => {
    // Four in each isolate: with five failures in a row, the circuit breaker of the store would reject the others.
    const impatient = Array.from({ length: 4 * workers().count }, () => ({ limit: fixed(1000, "hasty"), timeoutMs: 1 }));
    const patient = Array.from({ length: 30 }, () => ({ limit: fixed(1000, "hasty"), timeoutMs: 60_000 }));
    const [hasty, others] = await Promise.all([consume(workers(), database, impatient), consume(workers(), database, patient)]);
    expect(hasty.allowed + hasty.degraded).toBe(impatient.length);
    expect(others).toEqual({ allowed: 30, degraded: 0 });
    expect(await consume(workers(), database, [{ limit: fixed(1000, "hasty") }])).toEqual({ allowed: 1, degraded: 0 });
  });

  it("decides, settles, blocks and shows everything as a memory store does", { timeout: patienceMs }, () =>
    // One request, and keys that need not share an object.
    database === "sharded" ? undefined : workers().ask(`${database}/compare`, 150),
  );
}

export function restartCase(start: (folder: string) => Promise<Workers>, databases: readonly string[]): void {
  it("a restart of the runtime loses nothing", { timeout: patienceMs }, async () => {
    const folder = mkdtempSync(join(tmpdir(), "floodgate-workers-"));
    try {
      for (const allowed of [3, 0]) {
        const restarted = await start(folder);
        for (const database of databases) {
          expect(await consume(restarted, database, [{ limit: fixed(3, "restart"), times: 5 }])).toEqual({ allowed, degraded: 0 });
        }
        await restarted.stop();
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}
