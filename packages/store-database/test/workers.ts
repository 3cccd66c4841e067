import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { build, type Plugin } from "esbuild";
import { Miniflare } from "miniflare";
import { describe, it } from "vitest";
import { storeConformance } from "../../conformance/src/store.js";
import type { DatabaseDriver, Loaded, Row, Swapped } from "../src/index.js";

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

/** `worker.mjs` in several isolates. */
export class Workers {
  readonly #miniflare: Miniflare;
  readonly #names: readonly string[];

  private constructor(miniflare: Miniflare, names: readonly string[]) {
    this.#miniflare = miniflare;
    this.#names = names;
  }

  static async start(isolates: number, folder?: string): Promise<Workers> {
    const code = await bundled({ file: join(__dirname, "worker.mjs") });
    const names = Array.from({ length: isolates }, (_, i) => `worker-${i}`);
    const started = new Workers(runtime(code, names, ["nodejs_compat"], folder), names);
    await started.ask("d1/migrate");
    return started;
  }

  /** What an isolate answers. */
  async ask(path: string, question: unknown = null, isolate = 0): Promise<unknown> {
    const worker = (await this.#miniflare.getWorker(this.#names[isolate % this.#names.length])) as unknown as { fetch: typeof fetch };
    const response = await worker.fetch(`http://localhost/${path}`, { method: "POST", body: JSON.stringify(question) });
    const answer = (await response.json()) as { message?: string };
    if (!response.ok) throw Object.assign(new Error(answer.message), answer);
    return answer;
  }

  /** A driver that runs in the Worker. */
  driver(database: string): DatabaseDriver {
    const ask = async (call: string, question: unknown): Promise<Swapped> => {
      const answer = (await this.ask(`${database}/${call}`, question)) as { done: boolean; nowMs: number; rows: (Row | null)[] };
      return { ...answer, rows: answer.rows.map((row) => row ?? undefined) };
    };
    return {
      load: (keys): Promise<Loaded> => ask("load", keys),
      swap: (changes, valid) => ask("swap", { changes, valid }),
      sweep: (most) => this.ask(`${database}/sweep`, most),
    };
  }

  async stop(): Promise<void> {
    await this.#miniflare.dispose();
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
