import { performance } from "node:perf_hooks";

/** Asks as often as it can for some seconds, with `inFlight` calls at a time, of keys in turn. */
export async function askInFlight(ask, { inFlight, seconds, keys }) {
  let asked = 0;
  const startMs = performance.now();
  const startCpu = process.cpuUsage();
  const askInTurn = async () => {
    while (performance.now() - startMs < seconds * 1000) await ask(`key-${asked++ % keys}`);
  };
  await Promise.all(Array.from({ length: inFlight }, askInTurn));
  const { user, system } = process.cpuUsage(startCpu);
  return { asked, cpu: user + system, perSecond: (asked / (performance.now() - startMs)) * 1000 };
}
