import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { inTurn } from "./lib/child.mjs";
import { steadyAllocation } from "./lib/inject.mjs";
import { median, progress, spread, table } from "./lib/report.mjs";

const repository = fileURLToPath(new URL("..", import.meta.url));

/** What is measured: a script, its arguments, its question of a round, and the unit of the answer. */
const decisions = ["slidingWindowCounter", "fixedWindow", "slidingWindowLog", "tokenBucket", "leakyBucket", "three limits"].flatMap(
  (name) =>
    ["hot", "denied", "keys"].map((kase) => ({
      label: `${name}, ${kase}`,
      script: "store-child.mjs",
      args: [name, kase],
      warm: "warm up",
      ask: "round",
      unit: "ns",
    })),
);
const requests = ["express", "koa"].flatMap((framework) =>
  ["allowed", "denied"].map((kind) => ({
    label: `${framework} request, ${kind}`,
    script: "cpu-child.mjs",
    args: [framework, kind, "127.0.0.1"],
    execArgv: steadyAllocation,
    warm: 20_000,
    ask: 5000,
    unit: "µs",
  })),
);

/** More than this is worth a look, if it is more than the noise too. */
const tolerated = 1.05;

/**
 * The CPU time of decisions and requests, with the packages of this working tree and with those of an earlier commit. Both run in turn, round
 * by round, so that the machine treats them alike.
 */
export async function release({ base, rounds = 7, processes, only }) {
  const from = base ?? newestTag();
  const checkout = checkoutOf(from);
  try {
    // Both run these scripts, each with its own packages.
    for (const part of ["store-child.mjs", "cpu-child.mjs", "lib", "http"]) {
      cpSync(join(repository, "bench", part), join(checkout, "bench", part), { recursive: true });
    }
    const sides = [checkout, repository];
    const rows = [];
    for (const measured of [...decisions, ...requests].filter(({ label }) => only === undefined || label.includes(only))) {
      rows.push(await compare(measured, sides, { rounds, processes }));
    }
    return table(
      `This working tree beside ${from}: CPU time of a decision or request, and x = ratio in the same round (medians of ${rounds} rounds in each of ${processes} processes)`,
      ["subject", from.slice(0, 12), "now", "x", "noise", ""],
      rows,
    );
  } finally {
    remove(checkout);
  }
}

/** The last release before the working tree. */
function newestTag() {
  try {
    return git(["describe", "--tags", "--abbrev=0"]);
  } catch {
    throw new Error("There is no tag of a release before this commit. Name a commit: npm run bench -- release --base HEAD~20");
  }
}

/** A checkout of a commit in a folder of its own, installed and built. */
function checkoutOf(commit) {
  const folder = join(mkdtempSync(join(tmpdir(), "floodgate-release-")), "tree");
  git(["worktree", "add", "--detach", folder, commit]);
  progress(`release: building ${commit}`);
  try {
    execFileSync("npm", ["run", "--silent", "setup"], { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  } catch (error) {
    remove(folder);
    throw new Error(`${commit} does not build here.`, { cause: error });
  }
  return folder;
}

function remove(folder) {
  git(["worktree", "remove", "--force", folder]);
  rmSync(dirname(folder), { recursive: true });
}

function git(args) {
  return execFileSync("git", args, { cwd: repository, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
}

/** @param sides the folders of the earlier and of this working tree. */
async function compare({ label, script, args, execArgv = [], warm, ask, unit }, sides, { rounds, processes }) {
  const children = sides.map((root) => [script, args, execArgv, root]);
  const turns = { processes, rounds, ask: (child, isWarmUp) => child.ask(isWarmUp ? warm : ask) };
  const [before, now] = Object.values(await inTurn(`release: ${label}`, children, turns));
  const ratios = now.map((time, round) => time / before[round]);
  const ratio = median(ratios);
  const noise = spread(ratios);
  const verdict = ratio > Math.max(tolerated, 1 + 2 * noise) ? "slower" : "";
  return [
    label,
    `${median(before).toFixed(1)} ${unit}`,
    `${median(now).toFixed(1)} ${unit}`,
    ratio.toFixed(2),
    `±${(100 * noise).toFixed(0)} %`,
    verdict,
  ];
}
