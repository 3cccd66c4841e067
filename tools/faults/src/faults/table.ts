import type { Report } from "./run.js";

/** Formats the results, one line per fault. */
export function table(reports: ReadonlyMap<string, Report>): string {
  const columns = ["fault", "decisions", "of them degraded", "longest, ms", "wrong verdicts", "lost or hung", "recovered in, ms"];
  const rows = Array.from(reports, ([name, { decisions, degraded, longestMs, wrong, lost, recoveryMs }]) =>
    [name, decisions, degraded, Math.round(longestMs), wrong, lost, Math.round(recoveryMs)].map(String),
  );
  const widths = columns.map((column, i) => Math.max(column.length, ...rows.map((row) => (row[i] as string).length)));
  const line = (cells: readonly string[]): string =>
    cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] as number) : cell.padStart(widths[i] as number))).join("  ");
  return [columns, widths.map((width) => "-".repeat(width)), ...rows].map(line).join("\n");
}
