import { cpus } from "node:os";

/** The number that a share of the numbers does not exceed; between two, their mean by distance. */
export function quantile(numbers, share) {
  const sorted = Float64Array.from(numbers).sort();
  const at = (sorted.length - 1) * share;
  const below = sorted[Math.floor(at)];
  return below + (sorted[Math.ceil(at)] - below) * (at % 1);
}

export function median(numbers) {
  return quantile(numbers, 0.5);
}

/** Half the interquartile range. */
export function halfQuartileRange(numbers) {
  return (quantile(numbers, 0.75) - quantile(numbers, 0.25)) / 2;
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
