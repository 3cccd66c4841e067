import { readFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { SourceMap } from "node:module";
import { fileURLToPath } from "node:url";
import inject from "light-my-request";
import type { Case } from "./apps.js";

/** The calls of each function, by the path of its source below `packages`. */
export type Calls = ReadonlyMap<string, ReadonlyMap<string, number>>;

/** Enough for V8 to optimise, so that one-time work is over. */
const warmUp = 1500;

/** Counts the calls of one warm request in the packages' built code. */
export async function countCalls({ make, status }: Case): Promise<Calls> {
  const handle = make();
  const request = { method: "GET", url: "/", remoteAddress: "127.0.0.1" } as const;
  for (let i = 0; i < warmUp; i++) await inject(handle, request);
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  // Starting coverage discards optimised code, so the first request after it is not counted.
  await inject(handle, request);
  await session.post("Profiler.takePreciseCoverage");
  const { statusCode } = await inject(handle, request);
  const { result } = await session.post("Profiler.takePreciseCoverage");
  session.disconnect();
  if (statusCode !== status) throw new Error(`The request was answered ${statusCode}, not ${status}.`);

  const calls = new Map<string, Map<string, number>>();
  for (const { url, functions } of result) {
    if (!/\/packages\/[^/]+\/dist\/.+\.js$/.test(url)) continue;
    const sourceAt = sourcesOf(fileURLToPath(url));
    for (const { functionName, ranges } of functions) {
      const count = ranges[0]?.count ?? 0;
      const module = sourceAt(ranges[0]?.startOffset ?? 0);
      if (count === 0 || module === undefined) continue;
      const ofModule = calls.get(module) ?? new Map<string, number>();
      calls.set(module, ofModule);
      const name = functionName === "" ? `(anonymous at ${ranges[0]?.startOffset})` : functionName;
      ofModule.set(name, (ofModule.get(name) ?? 0) + count);
    }
  }
  return calls;
}

/** Tells which source an offset of a built file comes from: `core/src/limits/limiter`. */
function sourcesOf(file: string): (offset: number) => string | undefined {
  const code = readFileSync(file, "utf8");
  const map = new SourceMap(JSON.parse(readFileSync(`${file}.map`, "utf8")));
  return (offset) => {
    const before = code.slice(0, offset).split("\n");
    const entry = map.findEntry(before.length - 1, before.at(-1)?.length ?? 0);
    if (!("originalSource" in entry)) return undefined;
    const [, source] = /([^/]+\/src\/.+)\.ts$/.exec(new URL(entry.originalSource, `file://${file}`).pathname) ?? [];
    return source;
  };
}

export function total(calls: Calls): number {
  return [...calls.values()].flatMap((ofModule) => [...ofModule.values()]).reduce((sum, count) => sum + count, 0);
}
