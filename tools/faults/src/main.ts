import { parseArgs } from "node:util";
import { trials } from "./faults/faults.js";
import { type Report, run, table } from "./faults/run.js";
import { fuzzed } from "./fuzz/fuzz.js";
import { tryTargets } from "./routing/differential.js";
import { heapGrowth, leftBehind, type Sample, soak } from "./soak/soak.js";

const help = `Usage: npm run faults -- [part...] [options]

What npm test does in short, at length and by hand; ends with code 1 where something is not as it should be.

Parts (all of them by default):
  faults  Express, Koa and Hono apps under a steady load while Redis fails and comes back: a table
  soak    mixed traffic in one process: whether its heap stays flat, and its listeners, timers and keys
  fuzz    hostile decisions in memory and in Redis, hostile options, hostile requests
  routing random apps of each framework and random targets: whatever reaches a handler has been counted under its rule

Options:
  --only <text>    faults whose name contains this
  --lease          faults with leases: processes spend units that they have charged ahead
  --minutes <m>    how long to soak (default 10)
  --decisions <n>  how many hostile things to try (default 10000000)
  --targets <n>    how many targets to try (default 500000)
  --seed <n>       what the apps and targets are made from (default: another one each time)
  --help           this text`;

interface Options {
  readonly only: string;
  readonly lease: boolean;
  readonly minutes: number;
  readonly decisions: number;
  readonly targets: number;
  readonly seed: number;
}

/** Each part returns what is wrong, in words. */
const parts: Readonly<Record<string, (options: Options) => Promise<readonly string[]>>> = {
  async faults({ only, lease }) {
    const reports = new Map<string, Report>();
    for (const { name, fault, onStoreError } of trials) if (name.includes(only)) reports.set(name, await run(fault, onStoreError, lease));
    console.log(`${table(reports)}\n`);
    return [...reports].flatMap(([name, { problems }]) => problems.map((problem) => `${name}: ${problem}`));
  },

  async soak({ minutes }) {
    const endMs = performance.now() + minutes * 60_000;
    const report = await soak(({ length }) => length > 2 && performance.now() > endMs);
    const { samples, keysLeft } = report;
    const tenth = Math.ceil(samples.length / 10);
    console.log(["decisions", "heap, MB", "RSS, MB", "listeners", "timers"].join("\t"));
    for (const sample of samples.filter((_, i) => (i + 1) % tenth === 0)) console.log(cells(sample).join("\t"));
    console.log(
      `The heap has grown by ${megabytes(heapGrowth(samples))} MB from the second third to the last; ${keysLeft} keys are left in Redis.\n`,
    );
    return leftBehind(report, 20e6);
  },

  async fuzz({ decisions }) {
    for (const [what, { share, run }] of Object.entries(fuzzed)) {
      const count = Math.round(share * decisions);
      await run(count);
      console.log(`${count} hostile ${what}: nothing that must not be, and ${megabytes(process.memoryUsage().heapUsed)} MB of heap`);
    }
    return [];
  },

  async routing({ targets, seed }) {
    const tallies = await tryTargets(targets, seed);
    for (const [framework, { targets, reached }] of Object.entries(tallies)) {
      console.log(`${framework}: ${targets} targets; ${reached} reached a handler`);
    }
    console.log(`${targets} targets from the seed ${seed}: each that reached a handler was counted under its rule`);
    return [];
  },
};

function cells({ decisions, heapBytes, rssBytes, listeners, timers }: Sample): (string | number)[] {
  return [decisions, megabytes(heapBytes), megabytes(rssBytes), listeners, timers];
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}

function readOptions(): Options & { readonly chosen: readonly string[]; readonly help: boolean } {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      only: { type: "string", default: "" },
      lease: { type: "boolean", default: false },
      minutes: { type: "string", default: "10" },
      decisions: { type: "string", default: "10000000" },
      targets: { type: "string", default: "500000" },
      seed: { type: "string", default: `${Date.now() % 2 ** 32}` },
      help: { type: "boolean", default: false },
    },
  });
  const { only, lease, help } = values;
  const numbers = {
    minutes: Number(values.minutes),
    decisions: Number(values.decisions),
    targets: Number(values.targets),
    seed: Number(values.seed),
  };
  for (const part of positionals) if (!Object.hasOwn(parts, part)) throw new Error(`No part is called "${part}".`);
  for (const [name, value] of Object.entries(numbers)) if (!(value > 0)) throw new Error(`--${name} takes a number above 0.`);
  return { ...numbers, only, lease, help, chosen: positionals.length > 0 ? positionals : Object.keys(parts) };
}

let options: ReturnType<typeof readOptions> | undefined;
try {
  options = readOptions();
} catch (error) {
  console.error(`${(error as Error).message}\n\n${help}`);
  process.exitCode = 2;
}
if (options?.help === true) console.log(help);
else if (options !== undefined) {
  for (const part of options.chosen) {
    const startMs = performance.now();
    const problems = await parts[part]?.(options).catch((error: Error) => [error.stack ?? error.message]);
    console.log(`${part}: ${Math.round((performance.now() - startMs) / 1000)} s\n`);
    for (const problem of problems ?? []) {
      console.error(problem);
      process.exitCode = 1;
    }
  }
}
