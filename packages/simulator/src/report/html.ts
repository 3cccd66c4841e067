import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ReportData } from "./contract.js";

/** The page without data, which the build writes: from `src/report` as from `dist/report`. */
const template = join(__dirname, "..", "..", "dist", "report.html");

const place = '"{{data}}"';

/** A report as one HTML file that loads nothing else. Nothing of the log becomes markup: it is JSON in which no `<` is left. */
export function reportHtml(data: ReportData): string {
  const json = JSON.stringify(data).replaceAll("<", "\\u003c");
  const html = readFileSync(template, "utf8");
  const at = html.indexOf(place);
  return html.slice(0, at) + json + html.slice(at + place.length);
}
