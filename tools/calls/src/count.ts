import { Session } from "node:inspector/promises";
import inject from "light-my-request";
import type { Case } from "./apps.js";

/** The calls of each function, by module path below `packages`. */
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
    const [, module] = /\/packages\/([^/]+\/dist\/.+)\.m?js$/.exec(url) ?? [];
    if (module === undefined) continue;
    for (const { functionName, ranges } of functions) {
      const count = ranges[0]?.count ?? 0;
      if (count === 0) continue;
      const ofModule = calls.get(module) ?? new Map<string, number>();
      calls.set(module, ofModule);
      const name = functionName === "" ? `(anonymous at ${ranges[0]?.startOffset})` : functionName;
      ofModule.set(name, (ofModule.get(name) ?? 0) + count);
    }
  }
  return calls;
}

export function total(calls: Calls): number {
  return [...calls.values()].flatMap((ofModule) => [...ofModule.values()]).reduce((sum, count) => sum + count, 0);
}
