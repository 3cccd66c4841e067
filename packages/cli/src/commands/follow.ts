import type { RuleSet } from "@floodgate/core/rules";
import {
  follow,
  type Growing,
  GrowingFile,
  GrowingStream,
  type SimulateOptions,
  type Simulation,
  simulationLine,
  simulationText,
} from "@floodgate/simulator";
import { Failure } from "../failure.js";
import type { Io } from "../io.js";
import type { SizedSource } from "../logs.js";

/** How often the table on a terminal is drawn anew, in milliseconds. */
const redrawMs = 1000;

/**
 * Replays logs while they are written, until the command is interrupted. A terminal shows the table so far; anything else gets a line every
 * now and then, but for JSON.
 */
export async function followLogs(
  io: Io,
  sources: readonly SizedSource[],
  set: RuleSet,
  options: SimulateOptions,
  { everyMs, json }: { readonly everyMs: number; readonly json: boolean },
): Promise<Simulation> {
  const { signal, ignore } = interruption();
  const table = io.isTerminal && !json ? new LiveTable(io) : undefined;
  let lastMs = performance.now();
  const onLook = (simulation: () => Simulation): void => {
    const nowMs = performance.now();
    if (json || nowMs - lastMs < (table === undefined ? everyMs : redrawMs)) return;
    lastMs = nowMs;
    if (table === undefined) io.out(`${simulationLine(simulation())}\n`);
    else table.draw(simulation());
  };
  try {
    return await follow(
      sources.map(({ source, bytes }) => growing(io, source.name, bytes)),
      set,
      { ...options, signal, onLook },
    );
  } finally {
    ignore();
    table?.clear();
    // An open standard input would keep the process alive.
    if (sources.some(({ source }) => source.name === "stdin")) (io.input as { destroy?: () => void }).destroy?.();
  }
}

function growing(io: Io, name: string, bytes: number | undefined): Growing {
  if (name === "stdin") return new GrowingStream(name, io.input);
  if (bytes === undefined) throw new Failure("usage", `${name} is not a file. Write - and send it to standard input: < ${name}`);
  if (/\.(gz|zst)$/.test(name)) throw new Failure("usage", `${name} is compressed, so it does not grow. Leave --follow out.`);
  return new GrowingFile(name);
}

/** Ends at the first SIGINT or SIGTERM. A second one ends the process, as without this. */
function interruption(): { signal: AbortSignal; ignore: () => void } {
  const controller = new AbortController();
  const stop = (): void => controller.abort();
  const signals = ["SIGINT", "SIGTERM"] as const;
  for (const name of signals) process.once(name, stop);
  return {
    signal: controller.signal,
    ignore: () => {
      for (const name of signals) process.removeListener(name, stop);
    },
  };
}

/** A report that is drawn over the one before it. It is cut to the terminal, because a line that wraps could not be drawn over. */
class LiveTable {
  readonly #io: Io;
  #height = 0;

  constructor(io: Io) {
    this.#io = io;
  }

  draw(simulation: Simulation): void {
    const { rows = 24, columns = 80 } = process.stdout;
    const lines = simulationText(simulation, (_, text) => text).split("\n");
    const shown = lines.slice(0, Math.max(1, rows - 1)).map((line) => line.slice(0, columns - 1));
    this.clear();
    this.#io.out(`${shown.join("\n")}\n`);
    this.#height = shown.length;
  }

  clear(): void {
    if (this.#height > 0) this.#io.out(`\u001b[${this.#height}A\u001b[J`);
    this.#height = 0;
  }
}
