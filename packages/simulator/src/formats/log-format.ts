/** One HTTP request of a log. */
export interface LogRequest {
  /** When the log says that it happened, in milliseconds since the epoch. */
  readonly timeMs: number;
  /** The client's address as the log has it. Undefined if the log has none for this request. */
  readonly address: string | undefined;
  readonly method: string;
  /** The request target: a path with its query, or a URL. */
  readonly target: string;
  /** The line, from which the format reads other fields: its text, or the value that its JSON stands for. */
  readonly line: unknown;
  readonly format: LogFormat;
}

/** Why a line is skipped. `blank`: or a comment. `malformed`: it does not fit the format. `no-request`: the client sent no HTTP request. */
export type Skip = "blank" | "malformed" | "no-time" | "too-long" | "no-request";

/** Reads one field of a request's `line`. */
export type FieldReader = (line: unknown) => string | undefined;

/** A format of access logs. */
export interface LogFormat {
  readonly name: string;
  parse(line: string): LogRequest | Skip;
  /** How well a line fits: 0 if it does not. Of several formats that fit, the one with the most fields is meant. */
  fit(line: string): number;
  /** A reader of a field: a variable, a column, or a path in JSON. Undefined if the format has no such field. */
  field(name: string): FieldReader | undefined;
  /** A reader of a request header. Undefined if the format has none of that name. */
  header(lowerCaseName: string): FieldReader | undefined;
}
