import { Presets, SingleBar } from "cli-progress";
import type { Io } from "../io.js";
import type { SizedSource } from "../logs.js";

/** Reports bytes and lines that were read. */
export type OnProgress = (bytes: number, lines: number) => void;

/**
 * Shows a progress bar while `work` runs, if standard error is a terminal: with lines per second, and the time that is left if the logs are
 * files.
 * @param passes how often `work` reads the logs.
 */
export async function withProgress<T>(
  io: Io,
  sources: readonly SizedSource[],
  passes: number,
  work: (onProgress: OnProgress | undefined) => Promise<T>,
): Promise<T> {
  if (io.errTerminal === undefined) return work(undefined);
  const total = sources.reduce<number | undefined>(
    (sum, { bytes }) => (sum === undefined || bytes === undefined ? undefined : sum + bytes),
    0,
  );
  const format =
    total === undefined ? "  {lines} lines, {rate} lines/s" : "  {bar} {percentage} %  {lines} lines, {rate} lines/s, {eta_formatted} left";
  const bar = new SingleBar(
    { format, stream: io.errTerminal, clearOnComplete: true, hideCursor: true, etaBuffer: 50 },
    Presets.shades_classic,
  );
  const startMs = performance.now();
  let read = 0;
  let lines = 0;
  const payload = (): object => {
    const seconds = Math.max(0.001, (performance.now() - startMs) / 1000);
    return { lines: lines.toLocaleString("en"), rate: Math.round(lines / seconds).toLocaleString("en") };
  };
  const all = total === undefined ? 1 : Math.max(1, total * passes);
  bar.start(all, 0, payload());
  try {
    return await work((bytes, moreLines) => {
      read += bytes;
      lines += moreLines;
      // A log may grow while it is read.
      bar.update(total === undefined ? 0 : Math.min(read, all), payload());
    });
  } finally {
    bar.stop();
  }
}
