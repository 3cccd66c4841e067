import type { OnStoreErrorName } from "./limits.js";
import { Play } from "./play.js";
import type { Fault } from "./scene.js";
import { stageOf, timeoutMs } from "./stage.js";
import { Stopwatch } from "./stopwatch.js";

/** The result of a fault. */
export interface Report {
  readonly decisions: number;
  /** Decisions that were made without Redis. */
  readonly degraded: number;
  readonly longestMs: number;
  readonly wrong: number;
  readonly lost: number;
  /** The time from when servers and clients were connected again until a limit was exact again. */
  readonly recoveryMs: number;
  /** All violations, in words. */
  readonly problems: readonly string[];
}

/** Puts a steady load on Express, Koa and Hono apps, lets Redis fail and recover, and checks every request. */
export async function run(fault: Fault, onStoreError: OnStoreErrorName, lease = false): Promise<Report> {
  const unhandled: string[] = [];
  const onUnhandled = (reason: unknown): void => void unhandled.push(`unhandled rejection: ${reason}`);
  process.on("unhandledRejection", onUnhandled);
  const stopwatch = new Stopwatch(timeoutMs);
  const scene = await fault.start();
  const stage = await stageOf(scene.clients, onStoreError, stopwatch, lease);
  const play = new Play(fault, scene, stage, onStoreError);
  try {
    const recoveryMs = await play.perform();
    await stage.releaseLeases();
    const { decisions, lost, wrong, untrue } = play.load;
    const late = stopwatch.late === 0 ? [] : [`${stopwatch.late} decisions later than ${timeoutMs} ms`];
    return {
      decisions: decisions.all,
      degraded: decisions.degraded,
      longestMs: stopwatch.longestMs,
      wrong: wrong.length,
      lost: lost.length,
      recoveryMs,
      problems: [...wrong, ...lost, ...untrue, ...late, ...unhandled, ...(await play.audit())],
    };
  } finally {
    await play.load.stop();
    stopwatch.stop();
    stage.tearDown();
    await Promise.all(scene.clients.map((client) => client.close()));
    await scene.stop();
    process.off("unhandledRejection", onUnhandled);
  }
}

/** The figures of the results, as `docs/when-redis-fails.md` names them. */
export function figures({ decisions, degraded, longestMs, wrong, lost, recoveryMs }: Report): Readonly<Record<string, number>> {
  const [longest, recovered] = [Math.round(longestMs), Math.round(recoveryMs)];
  return { decisions, degraded, "longest, ms": longest, "wrong verdicts": wrong, "lost or hung": lost, "recovered in, ms": recovered };
}
