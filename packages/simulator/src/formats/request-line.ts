export interface RequestLine {
  readonly method: string;
  readonly target: string;
}

/** The methods that most requests have: the same strings for all requests. */
const methods = new Map(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"].map((method) => [method, method]));

/** Reads `GET /path HTTP/1.1`. Undefined if it is no HTTP request: a port scan, a TLS handshake, or a client that sent nothing. */
export function parseRequestLine(text: string): RequestLine | undefined {
  const space = text.indexOf(" ");
  if (space <= 0) return undefined;
  const method = methodOf(text.slice(0, space));
  // HTTP/0.9 has no version. A target with spaces ends at the last one.
  let end = text.length;
  while (end > space && text.charCodeAt(end) !== 0x20) end--;
  if (end === space || !text.startsWith("HTTP/", end + 1)) end = text.length;
  const target = text.slice(space + 1, end);
  return method === undefined || target === "" ? undefined : { method, target: unescaped(target) };
}

/** A method in upper case; undefined if the text is not a method. */
export function methodOf(text: string): string | undefined {
  return methods.get(text) ?? (/^[A-Za-z][A-Za-z-]{0,31}$/.test(text) ? text.toUpperCase() : undefined);
}

/** Undoes the escapes of nginx and Apache: `\x22`, `\"`. */
export function unescaped(text: string): string {
  if (text.indexOf("\\") < 0) return text;
  return text.replace(/\\(?:x([\dA-Fa-f]{2})|(.))/g, (_, hex: string | undefined, character: string) =>
    hex === undefined ? (controls[character] ?? character) : String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

const controls: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", b: "\b", v: "\v" };

/** The last of a list of forwarded addresses, which the nearest proxy has added. */
export function lastAddress(text: string): string {
  return text.indexOf(",") >= 0 ? text.slice(text.lastIndexOf(",") + 1).trim() : text;
}

/** An address without its port: `1.2.3.4:5678`, `[2001:db8::1]:443`. */
export function withoutPort(text: string): string {
  const [, v4, v6] = /^(?:(\d+\.\d+\.\d+\.\d+):\d+|\[([^\]]*)\](?::\d+)?)$/.exec(text) ?? [];
  return v4 ?? v6 ?? text;
}
