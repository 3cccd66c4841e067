import { existsSync, readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** A test and its helpers, as one text. */
function codeOf(file: string): string {
  const code = readFileSync(file, "utf8");
  const helpers = [...code.matchAll(/^(?:import|\}) .*from "(\.[^"]+)\.js"/gm)].map(([, path = ""]) => join(dirname(file), `${path}.ts`));
  return [file, code, ...helpers.filter((helper) => !helper.includes("/src/")).map(codeOf)].join("\n");
}

/**
 * It starts a server or another process, or measures memory, by itself or by a helper. Or it sends files over HTTP/2: in a thread, Node 20 and
 * 26 close such a file once more when the thread ends, and by then its descriptor may be a socket of another thread.
 */
const startsProcesses = /test-servers|node:child_process|memoryUsage|process\.chdir|respondWithFile/;

/**
 * It replaces modules or globals, which a file after it in the same thread would meet. Or it loads Express, whose requests keep the
 * `req.rateLimit` that the first copy of the middleware has defined. Or it is long, and may measure memory or watch its
 * process. All others share threads and processes, each with modules of its own (`test/fresh.ts`): to start a thread for each file and to load
 * the libraries there takes as long as many tests.
 */
const isAlone = ({ file, code }: (typeof tests)[number]): boolean =>
  /vi\.(?:resetModules|mock|doMock|stubGlobal|stubEnv)|process\.env\S+ = |from "(?:express|@nestjs\/\S+)"/.test(code) ||
  file.endsWith(".long.test.ts");

/** All folders of tests. */
const folders = ["packages", "tools"].flatMap((kind) => readdirSync(join(import.meta.dirname, kind)).map((name) => `${kind}/${name}/test`));

const tests = [...folders, "test"]
  .filter((folder) => existsSync(join(import.meta.dirname, folder)))
  .flatMap((folder) =>
    readdirSync(join(import.meta.dirname, folder), { recursive: true, encoding: "utf8" }).map((file) => `${folder}/${file}`),
  )
  .filter((file) => file.endsWith(".test.ts"))
  .map((file) => ({ file, code: codeOf(join(import.meta.dirname, file)) }));

const suites = new Set(
  tests.filter(({ code }) => /(?:adapter|store)Conformance\(/.test(code)).map(({ file }) => join(import.meta.dirname, file)),
);

/** Vitest begins with the largest files. Those that run a suite are small and take long: they come first, so that none runs alone at the end. */
class SuitesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return [...sorted.filter(({ moduleId }) => suites.has(moduleId)), ...sorted.filter(({ moduleId }) => !suites.has(moduleId))];
  }
}

/** Their apps and the browser read one clock, which must not be shifted. */
const inBrowsers = [
  "packages/dashboard/test/page/**/*.test.ts",
  "packages/simulator/test/page/**/*.test.ts",
  "tools/site/test/algorithms.*.ts",
];

/** For `npm run test:long`: faults, soaks, the suites on older versions, the tarballs, and what takes a browser or servers for long. */
const inLongRuns = process.env["ALL_RUNS"] === "1" ? [] : ["**/*.long.test.ts"];

/** `npm run test:quick` leaves these out: they take a third of its time. */
const thorough =
  process.env["QUICK_RUN"] === "1" ? ["hand-over", "eviction-model", "constant-time"].map((name) => `**/${name}.test.ts`) : [];

/** Failures and a summary. `npm run test:watch` shows more. */
const reporters = process.env["CI"] === undefined ? ["minimal"] : ["minimal", "github-actions"];

/** In CI, a test with real servers or processes may run once more, because the machine may stall. The report names it. */
const retry = process.env["CI"] === undefined ? 0 : 1;

/** Each file has modules of its own, and each test runs across midnight. */
const setupFiles = ["fresh", "edge"].map((name) => join(import.meta.dirname, `test/${name}.ts`));

/** A thread starts faster than a process. A process stops what its tests started even if it is killed. */
function project(name: string, pool: "threads" | "forks", isolate: boolean) {
  const include = tests
    .filter((test) => startsProcesses.test(test.code) === (pool === "forks") && isAlone(test) === isolate)
    .map(({ file }) => file);
  return {
    extends: true as const,
    test: {
      name,
      pool,
      isolate,
      retry: pool === "forks" ? retry : 0,
      setupFiles,
      include,
      exclude: [...inBrowsers, ...inLongRuns, ...thorough],
    },
  };
}

export default defineConfig({
  ssr: { resolve: { conditions: ["@floodgate/source"] } },
  resolve: { conditions: ["@floodgate/source"] },
  // Those of Nest.
  oxc: { decorator: { legacy: true } },
  test: {
    reporters,
    sequence: { sequencer: SuitesFirst },
    // More than there are cores: many tests wait for servers.
    maxWorkers: Math.ceil(1.5 * availableParallelism()),
    // A machine that is busy with other things must not fail a test.
    testTimeout: 30_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 20_000 } },
    projects: [
      project("threads", "threads", false),
      project("alone", "threads", true),
      project("servers", "forks", false),
      project("servers alone", "forks", true),
      { extends: true, test: { name: "browsers", pool: "forks", retry, include: inBrowsers, exclude: inLongRuns } },
    ],
  },
});
