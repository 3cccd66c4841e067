import { Session } from "node:inspector/promises";
import inject from "light-my-request";
import type { Case } from "./apps.js";

/** How often each function of a module ran, by the module's path from `packages` on. */
export type Calls = ReadonlyMap<string, ReadonlyMap<string, number>>;

/** More than V8 needs to optimise, so that what runs only at first is over. */
const warmUp = 300;

/** What one warm request runs of the packages' built code. */
export async function countCalls({ make, status }: Case): Promise<Calls> {
  const handle = make();
  const request = { method: "GET", url: "/", remoteAddress: "127.0.0.1" } as const;
  for (let i = 0; i < warmUp; i++) await inject(handle, request);
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  // Coverage throws optimised code away, so the first request after that is not the one to count.
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
