/** Bytes that a client sends, and what may come of them. */
export interface SmugglingCase {
  readonly name: string;
  readonly bytes: string;
  /** The statuses that the client gets. */
  readonly statuses: readonly number[];
  /** The requests that the upstream sees: method, target, body. Each of them is counted. */
  readonly seen: readonly string[];
}

/** What an attacker hides. No case may lead to it, unless the gateway counts it as a request. */
const hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";

function refused(name: string, bytes: string, status = 400): SmugglingCase {
  return { name, bytes, statuses: [status], seen: [] };
}

function passed(name: string, bytes: string, ...seen: string[]): SmugglingCase {
  return { name, bytes, statuses: seen.map(() => 200), seen };
}

/** What follows the requests is no request, and is told so after their answers. */
function refusedLast(name: string, bytes: string, ...seen: string[]): SmugglingCase {
  return { name, bytes, statuses: [...seen.map(() => 200), 400], seen };
}

const post = (headers: string, body: string): string => `POST /p HTTP/1.1\r\nHost: a\r\n${headers}\r\n\r\n${body}`;
const get = (headers: string, target = "/g"): string =>
  `GET ${target} HTTP/1.1\r\nHost: a\r\n${headers === "" ? "" : `${headers}\r\n`}\r\n`;
const chunkedHidden = `${Buffer.byteLength(hidden).toString(16)}\r\n${hidden}\r\n0\r\n\r\n`;

export const smugglingCases: readonly SmugglingCase[] = [
  // Two lengths
  refused("CL.TE", post("Content-Length: 5\r\nTransfer-Encoding: chunked", `0\r\n\r\n${hidden}`)),
  refused("TE.CL", post("Transfer-Encoding: chunked\r\nContent-Length: 4", chunkedHidden)),
  refused("CL.TE in lower case", post("content-length: 5\r\ntransfer-encoding: chunked", `0\r\n\r\n${hidden}`)),
  refused("CL.TE with the length 0", post("Content-Length: 0\r\nTransfer-Encoding: chunked", `0\r\n\r\n${hidden}`)),
  refused("CL.CL, different", post(`Content-Length: 0\r\nContent-Length: ${hidden.length}`, hidden)),
  refused("CL.CL, the same", post("Content-Length: 1\r\nContent-Length: 1", "a")),
  refused("a list of lengths", post("Content-Length: 1, 1", "a")),
  refused("a length with a sign", post("Content-Length: +1", "a")),
  refused("a negative length", post("Content-Length: -1", hidden)),
  refused("a hexadecimal length", post("Content-Length: 0x1", "a")),
  refused("a length with a unit", post("Content-Length: 1a", "a")),
  refused("an empty length", post("Content-Length: ", hidden)),
  refused("a length that overflows 64 bits", post("Content-Length: 18446744073709551617", "a")),

  // Codings
  refused("chunked, identity", post("Transfer-Encoding: chunked, identity", `0\r\n\r\n${hidden}`)),
  refused("identity, chunked", post("Transfer-Encoding: identity, chunked", `0\r\n\r\n${hidden}`), 501),
  refused("gzip, chunked", post("Transfer-Encoding: gzip, chunked", `0\r\n\r\n${hidden}`), 501),
  refused("identity", post("Transfer-Encoding: identity", hidden), 501),
  refused("xchunked", post("Transfer-Encoding: xchunked", `0\r\n\r\n${hidden}`), 501),
  refused("chunked with a parameter", post("Transfer-Encoding: chunked;a=b", `0\r\n\r\n${hidden}`), 501),
  refused("chunked in quotes", post('Transfer-Encoding: "chunked"', `0\r\n\r\n${hidden}`), 501),
  refused("two codings in two lines", post("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked", `0\r\n\r\n${hidden}`), 501),
  refused("chunked twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", `0\r\n\r\n${hidden}`)),
  refused("a vertical tab before chunked", post("Transfer-Encoding: \x0bchunked", `0\r\n\r\n${hidden}`)),
  refused("a line break before chunked", post("Transfer-Encoding:\r\n chunked", `0\r\n\r\n${hidden}`)),
  refused("a space before the colon of the coding", post("Transfer-Encoding : chunked", `0\r\n\r\n${hidden}`)),
  refused("HTTP/1.0 with chunks", `POST /p HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`),
  passed("CHUNKED in capitals", post("Transfer-Encoding: CHUNKED", "1\r\na\r\n0\r\n\r\n"), "POST /p a"),
  passed("a tab before chunked", post("Transfer-Encoding:\tchunked", "1\r\na\r\n0\r\n\r\n"), "POST /p a"),
  passed(
    "a GET with chunks that hold a request",
    `${get("Transfer-Encoding: chunked").slice(0, -2)}\r\n${chunkedHidden}`,
    `GET /g ${hidden}`,
  ),
  passed("a GET with a length and a request in its body", `${get(`Content-Length: ${hidden.length}`)}${hidden}`, `GET /g ${hidden}`),
  passed(
    "a coding that is named in Connection",
    post("Connection: transfer-encoding\r\nTransfer-Encoding: chunked", chunkedHidden),
    `POST /p ${hidden}`,
  ),
  passed(
    "a length that is named in Connection",
    post(`Connection: content-length\r\nContent-Length: ${hidden.length}`, hidden),
    `POST /p ${hidden}`,
  ),
  passed("Transfer_Encoding", post("Transfer_Encoding: chunked\r\nContent-Length: 5", "0\r\n\r\n"), "POST /p 0\r\n\r\n"),
  passed(
    "chunks after two thousand headers",
    `${get(`${"a:b\r\n".repeat(2100)}Transfer-Encoding: chunked`)}${chunkedHidden}`,
    `GET /g ${hidden}`,
  ),

  // Chunks
  passed("a chunk extension", post("Transfer-Encoding: chunked", "1;a=b\r\na\r\n0\r\n\r\n"), "POST /p a"),
  {
    name: "a line feed in a chunk extension",
    bytes: post("Transfer-Encoding: chunked", `1;\na\r\n0\r\n\r\n${hidden}`),
    statuses: [400],
    seen: [],
  },
  {
    name: "a bare line feed after a chunk size",
    bytes: post("Transfer-Encoding: chunked", `1\na\n0\n\n${hidden}`),
    statuses: [400],
    seen: [],
  },
  { name: "a chunk size with 0x", bytes: post("Transfer-Encoding: chunked", `0x1\r\na\r\n0\r\n\r\n${hidden}`), statuses: [400], seen: [] },
  { name: "a negative chunk size", bytes: post("Transfer-Encoding: chunked", `-1\r\na\r\n0\r\n\r\n${hidden}`), statuses: [400], seen: [] },
  {
    name: "a chunk size that overflows",
    bytes: post("Transfer-Encoding: chunked", `10000000000000001\r\na\r\n0\r\n\r\n${hidden}`),
    statuses: [400],
    seen: [],
  },
  {
    name: "a chunk that is longer than its size",
    bytes: post("Transfer-Encoding: chunked", `1\r\naaa\r\n0\r\n\r\n${hidden}`),
    statuses: [400],
    seen: [],
  },
  {
    name: "a length in the trailers",
    bytes: post("Transfer-Encoding: chunked", `0\r\nContent-Length: 50\r\n\r\n${hidden}`),
    statuses: [400],
    seen: [],
  },

  // Lines and names
  refused("obs-fold", get("X-A: 1\r\n 2")),
  refused("a space before a colon", get("X-A : 1")),
  refused("a space before the first name", "GET /g HTTP/1.1\r\n Host: a\r\n\r\n"),
  refused("a line without a colon", get("nothing")),
  refused("an empty name", get(": a")),
  refused("bare line feeds", `GET /g HTTP/1.1\nHost: a\n\n${hidden}`),
  refused("one bare line feed", `GET /g HTTP/1.1\r\nHost: a\nX-A: 1\r\n\r\n`),
  refused("a bare carriage return", get("X-A: 1\rContent-Length: 50")),
  refused("NUL in a value", get("X-A: 1\0")),
  refused("NUL in a name", get("X\0A: 1")),
  refused("NUL in the path", get("", "/g\0")),

  // Targets and hosts
  refused("an absolute target with another host", get("", "http://b/g")),
  passed("an absolute target with the same host", get("", "http://A/g?x"), "GET /g?x "),
  passed("an absolute target without a path", get("", "http://a?x"), "GET /?x "),
  refused("an absolute target with a user", get("", "http://u@a/g")),
  refused("an absolute target of another scheme", get("", "ftp://a/g")),
  refused("a target without a slash", get("", "g")),
  refused("a fragment", get("", "/g#/hidden")),
  refused("a space in the path", get("", "/g /hidden")),
  refused("a tab in the path", get("", "/g\t/hidden")),
  refused("GET *", get("", "*")),
  refused("two hosts", get("Host: b")),
  refused("two equal hosts", get("Host: a")),
  refused("no host", "GET /g HTTP/1.1\r\n\r\n"),
  refused("an empty host", "GET /g HTTP/1.1\r\nHost:\r\n\r\n"),
  refused("a host with a path", "GET /g HTTP/1.1\r\nHost: a/hidden\r\n\r\n"),
  refused("a host with a user", "GET /g HTTP/1.1\r\nHost: b@a\r\n\r\n"),
  refused("a list of hosts", "GET /g HTTP/1.1\r\nHost: a, b\r\n\r\n"),
  passed("a path that begins with two slashes", get("", "//b/g"), "GET //b/g "),
  refused("dot segments", get("Connection: close\r\n", "/x/../g/%2e%2e/y")),

  // Methods and versions
  refused("an unknown method", `FOO /g HTTP/1.1\r\nHost: a\r\n\r\n`),
  refused("a method in lower case", `get /g HTTP/1.1\r\nHost: a\r\n\r\n`),
  refused("CONNECT", `CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n${hidden}`, 405),
  refused("TRACE", `TRACE /g HTTP/1.1\r\nHost: a\r\n\r\n`, 405),
  refused("HTTP/2.0 as text", `GET /g HTTP/2.0\r\nHost: a\r\n\r\n`, 505),
  refused("HTTP/0.9", "GET /g\r\n\r\n", 505),
  refused("HTTP/1.2", `GET /g HTTP/1.2\r\nHost: a\r\n\r\n`),
  refused("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),

  // Upgrades
  passed("h2c is ignored", get("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk"), "GET /g "),
  passed(
    "the body of a request that asks for h2c is no request",
    post(`Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nContent-Length: ${hidden.length}`, hidden),
    `POST /p ${hidden}`,
  ),
  passed(
    "a request after one that asks for h2c is counted",
    `${get("Connection: Upgrade\r\nUpgrade: h2c")}${get("", "/h")}`,
    "GET /g ",
    "GET /h ",
  ),
  refused(
    "a WebSocket handshake with a body",
    `${get(`Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nContent-Length: ${hidden.length}`)}${hidden}`,
  ),

  // Several requests on one connection: all are counted
  passed("bytes after a request that says close", `${get("Connection: close")}${hidden}`, "GET /g "),
  passed("bytes after a request of HTTP/1.0", `GET /g HTTP/1.0\r\nHost: a\r\n\r\n${hidden}`, "GET /g "),
  refusedLast("a body that is longer than its length", post("Content-Length: 1", "a}"), "POST /p a"),
  refusedLast(
    "pipelined requests before one that is malformed",
    `${get("")}${post("Content-Length: 1", "a")}${get("X A: 1", "/h")}`,
    "GET /g ",
    "POST /p a",
  ),
  refusedLast(
    "a pipelined request before one whose body is malformed",
    `${get("")}${post("Transfer-Encoding: chunked", "1\r\naaa\r\n0\r\n\r\n")}${hidden}`,
    "GET /g ",
  ),
  passed("pipelined requests", `${get("")}${post("Content-Length: 1", "a")}${get("", "/h")}`, "GET /g ", "POST /p a", "GET /h "),
];
