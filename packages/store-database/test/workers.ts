import { join } from "node:path";
import { build } from "esbuild";
import { Miniflare } from "miniflare";
import type { DatabaseDriver, Loaded, Row, Swapped } from "../src/index.js";

/** The runtime warns of requests that ended before others which had waited with them. */
function handleRuntimeStdio(...outputs: { resume(): void }[]): void {
  for (const output of outputs) output.resume();
}

/** `worker.mjs` in workerd, in several isolates that share one D1 database and one namespace of Durable Objects. */
export class Workers {
  readonly #miniflare: Miniflare;
  readonly #names: readonly string[];

  private constructor(miniflare: Miniflare, names: readonly string[]) {
    this.#miniflare = miniflare;
    this.#names = names;
  }

  static async start(isolates: number, folder?: string): Promise<Workers> {
    const { outputFiles } = await build({
      entryPoints: [join(__dirname, "worker.mjs")],
      bundle: true,
      format: "esm",
      external: ["cloudflare:workers"],
      conditions: ["@floodgate/source"],
      write: false,
      logLevel: "silent",
    });
    const names = Array.from({ length: isolates }, (_, i) => `worker-${i}`);
    const workers = names.map((name) => ({
      name,
      compatibilityDate: "2026-06-01",
      modules: [{ type: "ESModule" as const, path: "worker.mjs", contents: (outputFiles[0] as { text: string }).text }],
      d1Databases: { DB: "limits" },
      durableObjects: { FLOODGATE: { className: "FloodgateObject", scriptName: "worker-0", useSQLite: true } },
    }));
    const saved = folder === undefined ? {} : { d1Persist: join(folder, "d1"), durableObjectsPersist: join(folder, "objects") };
    const started = new Workers(new Miniflare({ workers, ...saved, handleRuntimeStdio }), names);
    await started.ask("d1/migrate");
    return started;
  }

  /** What an isolate answers. */
  async ask(path: string, question: unknown = null, isolate = 0): Promise<unknown> {
    const worker = (await this.#miniflare.getWorker(this.#names[isolate])) as unknown as { fetch: typeof fetch };
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
