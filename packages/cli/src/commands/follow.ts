import type { RuleSet } from "@floodgate/core/rules";
import * as simulator from "@floodgate/simulator";
import { Failure } from "../failure.js";
import { interruption } from "../interruption.js";
import type { Io } from "../io.js";
import type { SizedSource } from "../logs.js";
import { LiveText } from "../output/live-text.js";

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
  options: simulator.SimulateOptions,
  { everyMs, json }: { readonly everyMs: number; readonly json: boolean },
): Promise<simulator.Simulation> {
  const { signal, ignore } = interruption(true);
  const table = io.isTerminal && !json ? new LiveText(io) : undefined;
  let lastMs = performance.now();
  const onLook = (simulation: () => simulator.Simulation): void => {
    const nowMs = performance.now();
    if (json || nowMs - lastMs < (table === undefined ? everyMs : redrawMs)) return;
    lastMs = nowMs;
    if (table === undefined) io.out(`${simulator.simulationLine(simulation())}\n`);
    else table.draw(simulator.simulationText(simulation(), (_, text) => text));
  };
  try {
    return await simulator.follow(
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

function growing(io: Io, name: string, bytes: number | undefined): simulator.Growing {
  if (name === "stdin") return new simulator.GrowingStream(name, io.input);
  if (bytes === undefined) throw new Failure("usage", `${name} is not a file. Write - and send it to standard input: < ${name}`);
  if (/\.(gz|zst)$/.test(name)) throw new Failure("usage", `${name} is compressed, so it does not grow. Leave --follow out.`);
  return new simulator.GrowingFile(name);
}
