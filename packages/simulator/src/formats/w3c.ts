import { JsonFormat } from "./json-lines.js";
import type { FieldReader, LogRequest, Skip } from "./log-format.js";
import { parseIsoTime } from "./time.js";

/** The columns of CloudFront's standard logs, for a file whose `#Fields` line is missing. */
export const cloudfrontColumns =
  "date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/**
 * The W3C extended log format, which IIS and CloudFront write: a line `#Fields:` names the columns of the lines after it. A line is read as an
 * object with a field for each column, and two that are made of others: `date time`, and `uri query` for the target.
 */
export class W3cFormat extends JsonFormat {
  #columns: readonly string[] = [];
  /** Whether a line of the log has named the columns. */
  #isNamed = false;
  /** The time of the last line `#Date:`, and of the last line after it. Undefined without one. */
  #startMs: number | undefined = undefined;
  #lastMs: number | undefined = undefined;

  /**
   * @param columns the columns if no line names them.
   * @param address the column with the client's address. Default: the usual ones.
   */
  constructor(name: string, columns = "", address?: string) {
    const addresses = address === undefined ? ["c-ip", "x-forwarded-for"] : [address.toLowerCase()];
    super(name, { time: ["date time"], address: addresses, method: ["cs-method"], target: ["uri query"] });
    if (columns !== "") this.#name(columns);
  }

  override parse(line: string): LogRequest | Skip {
    if (!line.startsWith("#")) return super.parse(line);
    const [, columns] = /^#Fields:\s*(.*)$/i.exec(line) ?? [];
    if (columns !== undefined) this.#name(columns);
    const [, date] = /^#Date:(.*)$/i.exec(line) ?? [];
    if (date !== undefined) this.#startMs = this.#lastMs = parseIsoTime(date.trim());
    this.#isNamed ||= columns !== undefined;
    return "blank";
  }

  protected override read(line: string): object | undefined {
    const values = valuesOf(line);
    if (!this.#hasTarget || values.length < this.#columns.length) return undefined;
    const row: Record<string, string> = {};
    for (const [i, name] of this.#columns.entries()) {
      const value = values[i];
      if (value !== "" && value !== "-") row[name] = value as string;
    }
    const { date, time = row["timestamp"], "cs-uri-stem": path = row["cs-uri"], "cs-uri-query": query } = row;
    if (time !== undefined) row["date time"] = date === undefined ? this.#dated(time) : `${date} ${time}`;
    // IIS Advanced Logging. A local time does not say its offset, so it is read as UTC, as in other formats.
    else if (row["date-local"] !== undefined) row["date time"] = `${row["date-local"]} ${row["time-local"]}`;
    if (path !== undefined) row["uri query"] = query === undefined ? path : `${path}?${query}`;
    if (!this.#columns.includes("cs-method")) row["cs-method"] = "GET";
    return row;
  }

  override fit(line: string): number {
    // A line that names the columns is certain.
    if (/^#Fields:/i.test(line) && this.parse(line) === "blank") return this.#hasTarget ? 100 : 0;
    // CloudFront separates by tabs. With spaces, each log of a program that begins with a time would fit.
    if (!this.#isNamed && !line.includes("\t")) return 0;
    return typeof this.parse(line) === "object" ? this.#columns.length : 0;
  }

  override field(name: string): FieldReader {
    const read = super.field(name.toLowerCase());
    return (line) => decoded(read(line));
  }

  override header(lowerCaseName: string): FieldReader {
    const sent = this.field(`cs(${lowerCaseName})`);
    if (lowerCaseName !== "x-forwarded-for") return sent;
    const own = this.field(lowerCaseName);
    return (line) => own(line) ?? sent(line);
  }

  get #hasTarget(): boolean {
    return this.#columns.includes("cs-uri-stem") || this.#columns.includes("cs-uri");
  }

  /** A time of day with its day: that of the line before, or the next one if the time is over an hour earlier. */
  #dated(time: string): string {
    const sinceMidnightMs = parseIsoTime(`1970-01-01 ${time}`);
    if (sinceMidnightMs === undefined || this.#startMs === undefined || this.#lastMs === undefined) return time;
    let ms = this.#lastMs - (this.#lastMs % dayMs) + sinceMidnightMs;
    if (ms < this.#lastMs - hourMs) ms += dayMs;
    // Lines are a little out of order, around midnight too.
    else if (ms >= this.#lastMs + dayMs - hourMs && ms - dayMs >= this.#startMs - (this.#startMs % dayMs)) ms -= dayMs;
    this.#lastMs = ms;
    return `${ms}`;
  }

  #name(columns: string): void {
    this.#columns = columns.trim().toLowerCase().split(/\s+/);
  }
}

/** CloudFront separates by tabs, others by spaces, with quotes around a value that has spaces. */
function valuesOf(line: string): string[] {
  if (line.includes("\t")) return line.split("\t");
  if (!line.includes('"')) return line.trimEnd().split(" ");
  return [...line.matchAll(/"((?:[^"]|"")*)"|[^\s"]\S*/g)].map(([value, quoted]) => quoted ?? value);
}

/** CloudFront percent-encodes, IIS writes a plus for a space. */
function decoded(value: string | undefined): string | undefined {
  if (!value?.includes("%")) return value;
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
