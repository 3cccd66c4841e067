import { appendFileSync } from "node:fs";
import { appendFile, mkdtemp, rename, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { follow, GrowingFile, GrowingStream, type Simulation, simulate, simulationLine, simulationText } from "../../src/index.js";
import { lineAt, logOf, randomLog, rules } from "../logs.js";

const set = rules("rules: [{ name: per-ip, policy: { algorithm: fixed-window, limit: 3, window: 1m } }]");
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "floodgate-follow-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const text = (from: number, to: number): string =>
  Array.from({ length: to - from }, (_, i) => `${lineAt(`192.0.2.${(from + i) % 5}`, from + i)}\n`).join("");

/** Follows logs through steps: each waits until so many requests were counted, and then does something. The last one ends it. */
function followed(names: readonly string[], steps: readonly [requests: number, then: () => unknown][]): Promise<Simulation> {
  const controller = new AbortController();
  const left = [...steps];
  let busy = false;
  return follow(
    names.map((name) => new GrowingFile(join(folder, name))),
    set,
    {
      signal: controller.signal,
      pollMs: 2,
      settleMs: 4,
      onLook: (simulation) => {
        // What has not been sorted yet can be shown, too.
        expect(simulationLine(simulation())).toMatch(/no time yet|UTC/);
        expect(simulationText(simulation(), (_, text) => text)).toContain("per-ip");
        const [step] = left;
        if (busy || step === undefined || simulation().requests < step[0]) return;
        left.shift();
        busy = true;
        Promise.resolve(step[1]()).then(() => {
          busy = false;
          if (left.length === 0) controller.abort();
        });
      },
    },
  );
}

const figures = ({ rules, requests, lines, rejected }: Simulation): object => ({ rules, requests, lines, rejected });

it("a log that grows is replayed as the whole log is", async () => {
  const log = join(folder, "a.log");
  await writeFile(log, text(0, 100));
  const live = await followed(
    ["a.log"],
    [
      [100, () => appendFile(log, text(100, 150).slice(0, -30))],
      // The last line is complete only now.
      [149, () => appendFile(log, text(100, 150).slice(-30))],
      [150, () => undefined],
    ],
  );
  expect(figures(live)).toEqual(figures(await simulate([logOf(text(0, 150))], set)));
});

it("a log that is renamed and made anew, or truncated, loses no line", async () => {
  const log = join(folder, "a.log");
  await writeFile(log, text(0, 50));
  const live = await followed(
    ["a.log"],
    [
      [50, () => rename(log, join(folder, "a.log.1"))],
      // The server writes to the old file until it opens the new one.
      [50, () => appendFile(join(folder, "a.log.1"), text(50, 60))],
      [60, () => writeFile(log, text(60, 90))],
      [90, () => truncate(log)],
      [90, () => appendFile(log, text(90, 95))],
      [95, () => undefined],
    ],
  );
  expect(figures(live)).toEqual(figures(await simulate([logOf(text(0, 95))], set)));
});

it("several logs are followed, also one that does not exist yet", async () => {
  await writeFile(join(folder, "a.log"), text(0, 20));
  const live = await followed(
    ["a.log", "b.log"],
    [
      [20, () => writeFile(join(folder, "b.log"), text(20, 40))],
      [40, () => appendFile(join(folder, "a.log"), text(40, 60))],
      [60, () => undefined],
    ],
  );
  expect(figures(live)).toEqual(figures(await simulate([logOf(text(0, 60))], set)));
});

it("requests count while more keep coming, in the order of their times", async () => {
  const log = join(folder, "a.log");
  await writeFile(log, "");
  const controller = new AbortController();
  let [looks, written] = [0, 0];
  const live = await follow([new GrowingFile(log)], set, {
    signal: controller.signal,
    pollMs: 5,
    settleMs: 10,
    onLook: (simulation) => {
      expect(looks).toBeLessThan(500);
      if ((simulation().rules[0]?.requests as number) >= 20) controller.abort();
      // Each second look finds two lines, in the wrong order.
      else if (looks++ % 2 === 0) {
        appendFileSync(log, text(written + 1, written + 2) + text(written, written + 1));
        written += 2;
      }
    },
  });
  expect(figures(live)).toEqual(figures(await simulate([logOf(text(0, written))], set)));
});

it("a stream is followed until it ends", async () => {
  const log = randomLog(3, 500);
  const live = await follow([new GrowingStream("stdin", logOf(log).open())], set, { pollMs: 1 });
  expect(figures(live)).toEqual(figures(await simulate([logOf(log)], set)));
});
