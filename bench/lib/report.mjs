import { cpus } from "node:os";

export function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Half the interquartile range. */
export function halfQuartileRange(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const quantile = (share) => sorted[Math.round((sorted.length - 1) * share)];
  return (quantile(0.75) - quantile(0.25)) / 2;
}

/** The median of the ratios of numbers that were measured in turn. */
export function medianRatio(numbers, others) {
  return median(numbers.map((number, i) => number / others[i]));
}

/** The standard error of a median, if the numbers are about normal. */
export function errorOfMedian(numbers) {
  return (1.86 * halfQuartileRange(numbers)) / Math.sqrt(numbers.length);
}

/** The spread as a share of the median: the noise of the rounds. */
export function spread(numbers) {
  return halfQuartileRange(numbers) / median(numbers);
}

/** Rows of text under a heading, numbers to the right. */
export function table(heading, columns, rows) {
  const lines = [columns, ...rows];
  const widths = columns.map((_, column) => Math.max(...lines.map((line) => String(line[column]).length)));
  const draw = (line) => line.map((cell, i) => (i === 0 ? String(cell).padEnd(widths[i]) : String(cell).padStart(widths[i]))).join("  ");
  const text = [draw(columns), widths.map((width) => "-".repeat(width)).join("  "), ...rows.map(draw)];
  return `${heading}\n\n${text.map((line) => `  ${line}`.trimEnd()).join("\n")}\n`;
}

export function environment() {
  const [first] = cpus();
  return `${cpus().length} × ${first?.model ?? "unknown processor"}, Node ${process.version}, ${process.platform} ${process.arch}, ${new Date().toISOString().slice(0, 10)}`;
}

/** Prints progress to standard error, so that standard output contains only results. */
export function progress(text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
  else if (text !== "") process.stderr.write(`${text}\n`);
}
