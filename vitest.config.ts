import { existsSync, readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { defineConfig } from "vitest/config";

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
 * It changes or reads what a process has once: timers, the console, Object.prototype, modules, listeners and the inventory of all limits.
 * Others share their modules with the files before them in the same thread, because loading modules takes as long as many tests. `fetch` knows
 * one app a process.
 */
const needsOwnModules =
  /vi\.(?:useFakeTimers|resetModules|mock|doMock|stubGlobal|stubEnv|setSystemTime)|spyOn\((?:console|process|globalThis)|process\.(?:emit|on|once)\(|process\.env\S+ = |\bobserve\(|\b(?:inventory|watchShadowRules)\(|Object\.prototype as|packages\/(?:metrics|dashboard|fetch)\/test/;

/** All folders of tests. */
const folders = ["packages", "tools"].flatMap((kind) => readdirSync(join(import.meta.dirname, kind)).map((name) => `${kind}/${name}/test`));

const tests = [...folders, "test"]
  .filter((folder) => existsSync(join(import.meta.dirname, folder)))
  .flatMap((folder) =>
    readdirSync(join(import.meta.dirname, folder), { recursive: true, encoding: "utf8" }).map((file) => `${folder}/${file}`),
  )
  .filter((file) => file.endsWith(".test.ts"))
  .map((file) => ({ file, code: codeOf(join(import.meta.dirname, file)) }));
const those = (which: (code: string) => boolean): string[] => tests.filter(({ code }) => which(code)).map(({ file }) => file);

/** They run in processes: these stop what was started even if a test is killed. */
const servers = those((code) => startsProcesses.test(code) && !needsOwnModules.test(code));
const serversAlone = those((code) => startsProcesses.test(code) && needsOwnModules.test(code));
const alone = those((code) => !startsProcesses.test(code) && needsOwnModules.test(code));
const sharing = those((code) => !startsProcesses.test(code) && !needsOwnModules.test(code));

/** Their apps and the browser read one clock, which must not be shifted. */
const inBrowsers = [
  "packages/dashboard/test/page/**/*.test.ts",
  "packages/simulator/test/page/**/*.test.ts",
  "tools/site/test/algorithms.*.ts",
];

/** For `npm run test:long`: faults, soaks, the suites on older versions, the tarballs, and what takes a browser or servers for long. */
const inLongRuns = process.env["ALL_RUNS"] === "1" ? [] : ["**/*.long.test.ts"];

/** Its folder has Nest 11. There, long runs repeat the tests of @floodgate/nestjs. */
const nest11 = join(import.meta.dirname, "packages/nestjs/test/nest-11");
const inNest11 = process.env["ALL_RUNS"] === "1" ? ["packages/nestjs/test/*.test.ts"] : [];

/** `npm run test:quick` leaves these out: they take a third of its time. */
const thorough =
  process.env["QUICK_RUN"] === "1" ? ["hand-over", "eviction-model", "constant-time"].map((name) => `**/${name}.test.ts`) : [];

/** Failures and a summary. `npm run test:watch` shows more. */
const reporters = process.env["CI"] === undefined ? ["minimal"] : ["minimal", "github-actions"];

/** In CI, a test with real servers or processes may run once more, because the machine may stall. The report names it. */
const retry = process.env["CI"] === undefined ? 0 : 1;

/** Each test runs across midnight. */
const setupFiles = [join(import.meta.dirname, "test/edge.ts")];

/** Of each property: see `test/run-seconds.ts`. */
const runSeconds = Number(process.env["RUN_SECONDS"] ?? 0);
if (runSeconds > 0) setupFiles.push(join(import.meta.dirname, "test/run-seconds.ts"));

export default defineConfig({
  ssr: { resolve: { conditions: ["@floodgate/source"] } },
  resolve: { conditions: ["@floodgate/source"] },
  // As tools/bundle does.
  plugins: [{ name: "texts", transform: (code, id) => (/\.(?:lua|html)$/.test(id) ? `export default ${JSON.stringify(code)};` : null) }],
  // Those of Nest.
  oxc: { decorator: { legacy: true } },
  test: {
    reporters,
    // More than there are cores: many tests wait for servers.
    maxWorkers: Math.ceil(1.5 * availableParallelism()),
    // A machine that is busy with other things must not fail a test.
    testTimeout: 30_000 * (1 + runSeconds),
    hookTimeout: 60_000,
    expect: { poll: { timeout: 20_000 } },
    // Routers read targets with a malformed port by `url.parse`, which warns. The adapter suite sends them.
    execArgv: ["--disable-warning=DEP0170"],
    projects: [
      // A thread starts faster than a process.
      {
        extends: true,
        test: {
          name: "threads",
          pool: "threads",
          isolate: false,
          setupFiles,
          include: sharing,
          exclude: [...inBrowsers, ...inLongRuns, ...thorough],
        },
      },
      {
        extends: true,
        test: { name: "alone", pool: "threads", setupFiles, include: alone, exclude: [...inBrowsers, ...inLongRuns, ...thorough] },
      },
      {
        extends: true,
        test: {
          name: "servers",
          pool: "forks",
          isolate: false,
          retry,
          setupFiles,
          include: servers,
          exclude: [...inBrowsers, ...inLongRuns],
        },
      },
      {
        extends: true,
        test: {
          name: "servers alone",
          pool: "forks",
          retry,
          setupFiles,
          include: serversAlone,
          exclude: [...inBrowsers, ...inLongRuns],
        },
      },
      {
        extends: true,
        resolve: { alias: [{ find: /^(?=@nestjs\/[\w.-]+$)/, replacement: `${nest11}/node_modules/` }] },
        test: { name: "nest 11", pool: "forks", retry, setupFiles, include: inNest11, exclude: [] },
      },
      { extends: true, test: { name: "browsers", pool: "forks", retry, include: inBrowsers, exclude: inLongRuns } },
    ],
  },
});
