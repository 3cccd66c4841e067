import type { FieldReader, LogFormat, LogRequest, Skip } from "./log-format.js";
import { isBlank } from "./pattern.js";
import { lastAddress, methodOf, withoutPort } from "./request-line.js";
import { parseAnyTime, parseEpoch, parseIsoTime, remembered } from "./time.js";

/** The columns of CloudFront's standard logs, for a file whose `#Fields` line is missing. */
export const cloudfrontColumns =
  "date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query";

/** The W3C extended log format, which IIS and CloudFront write: a line `#Fields:` names the columns of the lines after it. */
export class W3cFormat implements LogFormat {
  readonly name: string;
  #columns: ReadonlyMap<string, number> = new Map();
  #date: number | undefined;
  #time: number | undefined;
  #address: number | undefined;
  #method: number | undefined;
  #path: number | undefined;
  #query: number | undefined;
  readonly #instantOf: (text: string) => number | undefined = remembered(parseIsoTime);

  readonly #addressNames: readonly string[];

  /**
   * @param columns the columns if no line names them.
   * @param address the column with the client's address. Default: the usual ones.
   */
  constructor(name: string, columns = "", address?: string) {
    this.name = name;
    this.#addressNames = address === undefined ? ["c-ip", "x-forwarded-for"] : [address.toLowerCase()];
    if (columns !== "") this.#name(columns);
  }

  parse(line: string): LogRequest | Skip {
    if (line.startsWith("#")) {
      const [, columns] = /^#Fields:\s*(.*)$/i.exec(line) ?? [];
      if (columns !== undefined) this.#name(columns);
      return "blank";
    }
    if (isBlank(line)) return "blank";
    if (this.#path === undefined) return "malformed";
    const values = valuesOf(line);
    if (values.length < this.#columns.size) return "malformed";
    const timeMs = this.#timeOf(values);
    if (timeMs === undefined) return "no-time";
    const method = this.#method === undefined ? "GET" : methodOf(values[this.#method] ?? "");
    const path = valueAt(values, this.#path);
    if (method === undefined || path === undefined) return "no-request";
    const query = valueAt(values, this.#query);
    const address = valueAt(values, this.#address);
    return {
      timeMs,
      address: address === undefined ? undefined : withoutPort(lastAddress(address)),
      method,
      target: query === undefined ? path : `${path}?${query}`,
      line,
      format: this,
    };
  }

  fit(line: string): number {
    // A line that names the columns is certain.
    if (/^#Fields:/i.test(line)) {
      this.parse(line);
      return this.#path === undefined ? 0 : 100;
    }
    return typeof this.parse(line) === "object" ? this.#columns.size : 0;
  }

  field(name: string): FieldReader {
    // Read when it is needed, because a later line may name other columns.
    return (line) => {
      const value = valueAt(valuesOf(line as string), this.#columns.get(name.toLowerCase()));
      return value === undefined ? undefined : decoded(value);
    };
  }

  header(lowerCaseName: string): FieldReader {
    return this.field(lowerCaseName === "x-forwarded-for" && this.#columns.has(lowerCaseName) ? lowerCaseName : `cs(${lowerCaseName})`);
  }

  #name(columns: string): void {
    const names = columns.trim().toLowerCase().split(/\s+/);
    this.#columns = new Map(names.map((name, i) => [name, i]));
    const find = (...known: readonly string[]): number | undefined =>
      known.map((name) => this.#columns.get(name)).find((i) => i !== undefined);
    this.#date = find("date");
    this.#time = find("time", "timestamp");
    this.#address = find(...this.#addressNames);
    this.#method = find("cs-method");
    this.#path = find("cs-uri-stem", "cs-uri");
    this.#query = find("cs-uri-query");
  }

  #timeOf(values: readonly string[]): number | undefined {
    const time = valueAt(values, this.#time);
    const date = valueAt(values, this.#date);
    if (time === undefined) return undefined;
    if (date !== undefined) return this.#instantOf(`${date} ${time}`);
    return parseAnyTime(time) ?? parseEpoch(Number(time));
  }
}

function valueAt(values: readonly string[], at: number | undefined): string | undefined {
  const value = at === undefined ? undefined : values[at];
  return value === undefined || value === "" || value === "-" ? undefined : value;
}

/** CloudFront separates by tabs, others by spaces, with quotes around a value that has spaces. */
function valuesOf(line: string): string[] {
  if (line.includes("\t")) return line.split("\t");
  if (!line.includes('"')) return line.trimEnd().split(" ");
  return [...line.matchAll(/"((?:[^"]|"")*)"|[^\s"]\S*/g)].map(([value, quoted]) => quoted ?? value);
}

/** CloudFront percent-encodes, IIS writes a plus for a space. */
function decoded(value: string): string {
  if (!value.includes("%")) return value;
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
