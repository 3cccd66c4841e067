import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { progress } from "./report.mjs";

/** A separate process, so that V8's optimisations for one subject do not affect the others. One question at a time. */
export class Child {
  #process;
  #waiting;

  /** @param root another checkout of the repository, whose script runs; default this one. */
  constructor(script, args, execArgv = [], root = undefined) {
    const url = root === undefined ? new URL(`../${script}`, import.meta.url) : pathToFileURL(join(root, "bench", script));
    this.#process = fork(url, args.map(String), { execArgv, stdio: ["ignore", "inherit", "inherit", "ipc"] });
    this.#process.on("message", (answer) => this.#waiting?.resolve(answer));
    this.#process.on("exit", (code) => this.#waiting?.reject(new Error(`${script} ${args.join(" ")} ended early (code ${code})`)));
  }

  ask(question) {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#process.send(question);
    });
  }

  /** Ends it, also in mid-work. What it was asked is never answered then. */
  async stop(signal = "SIGTERM") {
    this.#waiting = undefined;
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    this.#process.kill(signal);
    await once(this.#process, "exit");
  }
}

/** Uses processes, then stops them. */
export async function withChildren(children, use) {
  try {
    return await use(children);
  } finally {
    await Promise.all(children.map((child) => child.stop()));
  }
}

/** Asks a process of its own one question. */
export function askOnce(script, args, question, execArgv) {
  return withChildren([new Child(script, args, execArgv)], ([child]) => child.ask(question));
}

/**
 * Measures subjects that take turns, each in a process of its own, so that a busy machine treats them alike. Several processes of each come one
 * after the other, because where its memory happens to lie makes one process faster than the next.
 * @param subjects the arguments of each one's `Child`, by name.
 * @param ask gets a process, whether it only warms up, and the name of its subject. Default: it asks for a round, after a warm-up.
 * @returns the answers of each, in order.
 */
export async function inTurn(label, subjects, { processes, rounds, ask = askForRound }) {
  const names = Object.keys(subjects);
  const generations = [];
  for (let generation = 1; generation <= processes; generation++) {
    const children = Object.fromEntries(names.map((name) => [name, new Child(...subjects[name])]));
    const measure = (name, isWarmUp) => ask(children[name], isWarmUp, name);
    const inProcesses = `${label}: processes ${generation} of ${processes}`;
    generations.push(await withChildren(Object.values(children), () => inRounds(inProcesses, names, rounds, measure)));
  }
  return Object.fromEntries(names.map((name) => [name, generations.flatMap((answers) => answers[name])]));
}

const askForRound = (child, isWarmUp) => child.ask(isWarmUp ? "warm up" : "round");

/**
 * Measures subjects in turn in each round, in this process or in theirs. A first round warms up, and does not count.
 * @param measure gets the name of a subject, and whether it only warms up.
 * @returns the answers of each, in order.
 */
export async function inRounds(label, names, rounds, measure) {
  const answers = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    progress(`${label}: round ${round} of ${rounds}`);
    // Each goes first as often as last.
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const answer = await measure(name, round === 0);
      if (round > 0) answers[name].push(answer);
    }
  }
  return answers;
}

/** The child's side: answers each question with the result of `answer`. */
export function serve(answer) {
  process.on("message", async (question) => process.send(await answer(question)));
  process.on("disconnect", () => process.exit());
}

/** The memory of a child that runs with `--expose-gc`, without garbage. */
export function heldMemory() {
  for (let i = 0; i < 3; i++) globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return { heap: heapUsed, outside: external };
}

/** What a child holds more than before. */
export function addedSince(before) {
  const { heap, outside } = heldMemory();
  return { heap: heap - before.heap, outside: outside - before.outside };
}

/** The CPU time of this process so far, in microseconds. */
export function cpuUs() {
  const { user, system } = process.cpuUsage();
  return user + system;
}
