import { fork } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** A separate process, so that V8's optimisations for one subject do not affect the others. One question at a time. */
export class Child {
  #process;
  #waiting;

  /** @param root another checkout of the repository, whose script runs; default this one. */
  constructor(script, args, execArgv = [], root = undefined) {
    const url = root === undefined ? new URL(`../${script}`, import.meta.url) : pathToFileURL(join(root, "bench", script));
    this.#process = fork(url, args, { execArgv, stdio: ["ignore", "inherit", "inherit", "ipc"] });
    this.#process.on("message", (answer) => this.#waiting?.resolve(answer));
    this.#process.on("exit", (code) => this.#waiting?.reject(new Error(`${script} ${args.join(" ")} ended early (code ${code})`)));
  }

  ask(question) {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#process.send(question);
    });
  }

  stop() {
    this.#waiting = undefined;
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return Promise.resolve();
    return new Promise((resolve) => {
      this.#process.once("exit", resolve);
      this.#process.kill();
    });
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

/** The child's side: answers each question with the result of `answer`. */
export function serve(answer) {
  process.on("message", async (question) => process.send(await answer(question)));
  process.on("disconnect", () => process.exit());
}
