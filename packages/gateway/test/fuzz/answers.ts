import type { Random } from "./wire.js";

/** What an upstream does with one request. */
export interface Misbehaviour {
  /** What it sends, in pieces with short pauses. */
  readonly text: string;
  /** Whether it answers before the body of the request has arrived. */
  readonly isEarly: boolean;
  readonly end: "keep" | "end" | "destroy" | "reset";
}

const statusLines = [
  "HTTP/1.1 200 a\x01b",
  "HTTP/1.1 200 \xe4\xff",
  "HTTP/1.1 200",
  "HTTP/1.1 200 ",
  "HTTP/1.0 200 OK",
  "HTTP/1.1 204 No Content",
  "HTTP/1.1 205 Reset Content",
  "HTTP/1.1 304 Not Modified",
  "HTTP/1.1 413 Content Too Large",
  "HTTP/1.1 429 Too Many Requests",
  "HTTP/1.1 500 Internal Server Error",
  "HTTP/1.1 101 Switching Protocols",
  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket",
  "HTTP/1.1 101 Switching \x01\r\nConnection: Upgrade\r\nUpgrade: x\x7f",
  "HTTP/1.1 000 Nothing",
  "HTTP/1.1 099 Less",
  "HTTP/1.1 199 More",
  "HTTP/1.1 600 More",
  "HTTP/1.1 999 More",
  "HTTP/1.1 2000 OK",
  "HTTP/1.1 -20 OK",
  "HTTP/2.0 200 OK",
  "HTTP/0.9 200 OK",
  "ICY 200 OK",
  "RTSP/1.0 200 OK",
  "GET / HTTP/1.1",
  "",
  "\x16\x03\x01\x02\x00",
];

const interim = [
  "HTTP/1.1 100 Continue\r\n\r\n",
  "HTTP/1.1 102 Processing\r\n\r\n",
  "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n",
  "HTTP/1.1 103 Early Hints\r\nLink: \x01, <\xff\r\nLink: <>\r\n\r\n",
  "HTTP/1.1 103 \x01\r\nLink: </a>; rel=preload\r\nLink: </b>; rel=\xe4\r\n\r\n",
  "HTTP/1.1 150 Other\r\nContent-Length: 5\r\n\r\n",
];

const framing = [
  "Content-Length: 5",
  "Content-Length: 50",
  "Content-Length: 0",
  "Content-Length: -1",
  "Content-Length: 5, 5",
  "Content-Length: 18446744073709551617",
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: gzip, chunked",
  "Transfer-Encoding: chunked, identity",
  "Transfer-Encoding: identity",
  "Transfer-Encoding : chunked",
];

const headers = [
  "Connection: close",
  "Connection: keep-alive, X-Run, Content-Length",
  "Connection: upgrade",
  "Upgrade: h2c",
  "Keep-Alive: timeout=0",
  "Keep-Alive: timeout=99999999999, max=0",
  "Trailer: X-Sum",
  "Trailer: ,\xff, Content-Length",
  "Set-Cookie: a=1",
  "Set-Cookie: b=\xe4",
  "RateLimit: x",
  'RateLimit: "a";r=1',
  "Retry-After: soon",
  "X-RateLimit-Remaining: 1\t2",
  "Date: never",
  "X-Control: a\x01b\x7f",
  "X-Nul: a\0b",
  "X Space: 1",
  "X-Folded: a\r\n b",
  ": empty",
  "no colon",
  "__proto__: 1",
  "constructor: 1",
  `X-Large: ${"x".repeat(20_000)}`,
];

const bodies = [
  "",
  "hello",
  "5\r\nhello\r\n0\r\n\r\n",
  "5;a=b\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n",
  "5\r\nhello\r\n0\r\nContent-Length: 7\r\nX-Bad: \x01\r\nX-Sum: \xff\r\n\r\n",
  "5\r\nhello\r\n0\r\nno colon\r\nX Space: 1\r\n\r\n",
  "5\r\nhello\r\n",
  "z\r\nhello\r\n0\r\n\r\n",
  "ffffffffffffffffff\r\nhello",
  "5\r\nhelloworld\r\n0\r\n\r\n",
];

/** A made-up answer of an upstream. It names its run, so that an answer to another request can be told. */
export function misbehaviour(random: Random, run: number, mutate: (text: string) => string): Misbehaviour {
  let text = "";
  if (random.oneIn(4)) for (let many = 1 + random.below(random.oneIn(10) ? 3000 : 3); many > 0; many--) text += random.from(interim);
  const line = random.oneIn(3) ? random.from(statusLines) : "HTTP/1.1 200 OK";
  const some = Array.from({ length: random.below(3) }, () => random.from(random.oneIn(6) ? framing : headers));
  const body = random.from(bodies);
  // Most of them are framed, so that what comes after the head is read too.
  if (random.below(4) !== 0) some.push(body.endsWith("\r\n") ? "Transfer-Encoding: chunked" : `Content-Length: ${body.length}`);
  text += [line, `X-Run: of-${run}-`, ...some].join("\r\n");
  text += `\r\n\r\n${body}`;
  if (random.oneIn(8)) text += `HTTP/1.1 200 OK\r\nX-Run: of-${run}-\r\nContent-Length: 6\r\n\r\nsecond`;
  if (random.oneIn(4)) text = mutate(text);
  if (random.oneIn(12)) text = "";
  return { text, isEarly: random.oneIn(3), end: random.from(["keep", "keep", "end", "destroy", "reset"] as const) };
}

/** A request of a well-behaved client, for the upstream's answer `run`. */
export interface FuzzRequest {
  readonly method: string;
  readonly text: string;
  readonly isTunnel: boolean;
  /** Whether a further request may follow on its connection. */
  readonly isKept: boolean;
}

export function request(random: Random, run: number): FuzzRequest {
  const path = `/run/${run}`;
  const kind = random.below(9);
  const last = random.oneIn(3) ? "Connection: close\r\n" : "";
  const plain = (method: string, more = "", body = "", version = "1.1"): FuzzRequest => ({
    method,
    text: `${method} ${path} HTTP/${version}\r\nHost: a\r\n${more}${last}\r\n${body}`,
    isTunnel: false,
    isKept: version === "1.1" && last === "",
  });
  if (kind === 0) return plain("HEAD");
  if (kind === 1) return plain("POST", "Content-Length: 5\r\n", "hello");
  if (kind === 2) return plain("POST", "Content-Length: 5\r\nExpect: 100-continue\r\n", "hello");
  if (kind === 3)
    return plain("PUT", "Transfer-Encoding: chunked\r\nTrailer: X-In\r\nTE: trailers\r\n", "5\r\nhello\r\n0\r\nX-In: 1\r\n\r\n");
  if (kind === 4) return plain("GET", "", "", "1.0");
  if (kind === 5) return plain("POST", "Content-Length: 300000\r\n", "x".repeat(300_000));
  if (kind === 6) {
    const upgrade =
      "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    return { method: "GET", text: `GET ${path} HTTP/1.1\r\nHost: a\r\n${upgrade}\r\n`, isTunnel: true, isKept: false };
  }
  return plain("GET", "TE: trailers\r\n");
}
