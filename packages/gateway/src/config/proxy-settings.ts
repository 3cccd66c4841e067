import { file, flag, type Kind, milliseconds, type Setting, text, upstreamUrl, whole } from "./kinds.js";

/** The settings of the reverse proxy. */
export interface ProxySettings {
  readonly upstream: string | undefined;
  readonly upstreamCaFile: string | undefined;
  readonly upstreamInsecure: boolean;
  readonly preserveHost: boolean;
  readonly upstreamConnectTimeoutMs: number;
  readonly upstreamTimeoutMs: number;
  readonly upstreamMaxConnections: number | undefined;
  readonly clientTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  readonly tunnelTimeoutMs: number;
  readonly maxHeaderBytes: number;
  readonly maxBodyBytes: number | undefined;
  readonly maxHeld: number;
  readonly refundStatus: string | undefined;
  readonly methodOverride: boolean;
  readonly via: string | undefined;
}

const proxy = { only: "gateway", group: "Proxy" } as const;

function count(what: string, placeholder: string, least: number): Kind<number> {
  return whole(what, placeholder, least, Number.MAX_SAFE_INTEGER);
}

export const proxyTable: { readonly [Name in keyof ProxySettings]-?: Setting<ProxySettings[Name]> } = {
  upstream: {
    ...proxy,
    kind: upstreamUrl(),
    default: undefined,
    description: "the server that requests are passed to",
    example: "http://127.0.0.1:3000",
  },
  upstreamCaFile: {
    ...proxy,
    kind: file(),
    default: undefined,
    description: "a file with the certificates (PEM) that an https upstream's certificate must come from",
    example: "/etc/ssl/upstream.pem",
  },
  upstreamInsecure: {
    ...proxy,
    kind: flag(),
    default: false,
    description: "do not check the certificate of an https upstream",
    example: "true",
  },
  preserveHost: {
    ...proxy,
    kind: flag(),
    default: true,
    description: "pass the client's Host header on, in place of the upstream's own",
    example: "false",
  },
  upstreamConnectTimeoutMs: {
    ...proxy,
    kind: milliseconds(),
    default: 5000,
    description: "how long a connection to the upstream may take, in milliseconds",
    example: "5000",
  },
  upstreamTimeoutMs: {
    ...proxy,
    kind: milliseconds(),
    default: 60_000,
    description: "how long the upstream may take to send or take something, in milliseconds",
    example: "30000",
  },
  upstreamMaxConnections: {
    ...proxy,
    kind: count("a number of connections", "connections", 1),
    default: undefined,
    description: "the most connections to the upstream, further requests wait; default: no limit",
    example: "256",
  },
  clientTimeoutMs: {
    ...proxy,
    kind: milliseconds(),
    default: 60_000,
    description: "how long a client may take to send its headers, or to send or take something, in milliseconds",
    example: "30000",
  },
  keepAliveTimeoutMs: {
    ...proxy,
    kind: milliseconds(),
    default: 75_000,
    description: "how long a client's connection without a request stays open, in milliseconds",
    example: "75000",
  },
  tunnelTimeoutMs: {
    ...proxy,
    kind: milliseconds(),
    default: 3_600_000,
    description: "how long a WebSocket without data stays open, in milliseconds",
    example: "600000",
  },
  maxHeaderBytes: {
    ...proxy,
    kind: whole("a number of bytes", "bytes", 1024, 2 ** 20),
    default: 16_384,
    description: "the maximum size of a request's headers, in bytes",
    example: "16384",
  },
  maxBodyBytes: {
    ...proxy,
    kind: count("a number of bytes", "bytes", 0),
    default: undefined,
    description: "the maximum size of a request's body, in bytes (else 413); default: no limit",
    example: "10000000",
  },
  maxHeld: {
    ...proxy,
    kind: count("a number of requests", "requests", 0),
    default: 10_000,
    description: "how many requests of leaky buckets may wait for their turn at the same time (else 503)",
    example: "1000",
  },
  refundStatus: {
    ...proxy,
    kind: text("a list of statuses such as 404 or 5xx", "statuses", /^[1-5](?:\d\d|xx)(?:\s*,\s*[1-5](?:\d\d|xx))*$/),
    default: undefined,
    description: "the statuses of responses whose requests are refunded",
    example: "5xx,404",
  },
  methodOverride: {
    ...proxy,
    kind: flag(),
    default: false,
    description: "pass X-HTTP-Method-Override on, which lets a client avoid a rule by its method if the upstream obeys it",
    example: "true",
  },
  via: {
    ...proxy,
    kind: text("a word", "name", /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/),
    default: undefined,
    description: "the name of this gateway in the Via header; default: no Via header",
    example: "floodgate",
  },
};
