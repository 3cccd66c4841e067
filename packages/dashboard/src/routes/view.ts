/** A request as the dashboard sees it, whatever the framework. */
export interface View {
  readonly method: string;
  /** The part below the mount path, still encoded: `/data/overview`; `/` or empty for the page. */
  readonly path: string;
  /** The text after `?`. */
  readonly query: string;
  /** `"1.0"`, `"1.1"`, `"2.0"`. Undefined if the runtime does not tell. */
  readonly httpVersion: string | undefined;
  /** Whether this connection is encrypted. */
  readonly tls: boolean;
  /** Whether the server takes no new connections, and waits for this one to end. */
  isClosing(): boolean;
  /** The address at the other end of the connection, never a forwarded one. */
  readonly remoteAddress: string | undefined;
  /** By lower-case name; several lines are joined by ", ". */
  header(name: string): string | undefined;
  /** The names of all headers, in lower case. */
  headerNames(): Iterable<string>;
  /**
   * The body: parsed, if the app has a parser in front, else its text.
   * @returns undefined if it is longer than `most` bytes.
   */
  body(most: number): Promise<Body | undefined>;
  /** The object under which core knows the request. */
  readonly identity: object;
}

export type Body = { readonly parsed: unknown } | { readonly text: string };

/** What a request gets. */
export interface Reply {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string | ReadableStream<Uint8Array>;
}
