import { setTimeout as pause } from "node:timers/promises";
import { Child, withChildren } from "./lib/child.mjs";
import { withRedis } from "./lib/redis.mjs";
import { progress, table } from "./lib/report.mjs";

const subjects = ["Floodgate", "bottleneck", "bottleneck, expiration", "p-limit"];
const columns = ["two processes", "longer than the hold", "after SIGKILL, s", "a job twice"];
/** Seconds after which a slot counts as lost. */
const longest = 90;

/** Two processes with a limit of 2 at once: what they do together, and when one of them is killed. */
export async function slots() {
  const rows = [];
  await withRedis(async (server, redis) => {
    for (const subject of subjects) {
      const row = [subject];
      for (const [i, measure] of [manyRuns, longWork, afterKill, sameJob].entries()) {
        progress(`slots: ${subject}, ${columns[i]}`);
        await redis.flushall();
        const children = [1, 2].map(() => new Child("slots-child.mjs", [subject, server.port]));
        row.push(await withChildren(children, () => measure(...children, redis)));
      }
      rows.push(row);
    }
  });
  const heading = `The most at once with a limit of 2: 2 × 400 short runs; 3 runs of 6 s with a hold or expiration of 2 s; seconds until a process has a slot after the other, with both slots, was killed (at most ${longest}); one job sent twice`;
  return table(heading, ["", ...columns], rows);
}

const most = async (redis) => Number(await redis.get("most"));

async function manyRuns(first, second, redis) {
  const question = { runs: 400, atOnce: 8, ms: 5 };
  await Promise.all([first.ask(question), second.ask(question)]);
  return most(redis);
}

async function longWork(first, second, redis) {
  const working = first.ask({ runs: 2, atOnce: 2, ms: 6000 });
  while ((await most(redis)) < 2) await pause(10);
  await Promise.all([working, second.ask({ runs: 1, atOnce: 1, ms: 6000 })]);
  return most(redis);
}

async function afterKill(first, second, redis) {
  void first.ask({ runs: 2, atOnce: 2, ms: 600_000 });
  while ((await most(redis)) < 2) await pause(10);
  await first.stop("SIGKILL");
  const since = performance.now();
  const done = second.ask({ runs: 1, atOnce: 1, ms: 1 }).catch(() => undefined);
  await Promise.race([done, pause(1000 * longest)]);
  const seconds = (performance.now() - since) / 1000;
  return seconds < longest ? seconds.toFixed(1) : `not in ${longest}`;
}

/** A client that got no answer sends its job again: to another process, too. */
async function sameJob(first, second, redis) {
  const question = { runs: 2, atOnce: 2, ms: 1500, id: "job" };
  const failures = await Promise.all([first.ask(question), second.ask({ ...question, runs: 1 })]);
  return `${await most(redis)} at once${failures.some(Boolean) ? ", one is an error" : ""}`;
}
