import { statusList } from "@floodgate/core/rules";
import { type PresetName, presetNames } from "../ask/presets.js";
import {
  address,
  choice,
  choices,
  file,
  flag,
  type HeadersSetting,
  headerFormats,
  milliseconds,
  orFalse,
  pairs,
  peers,
  redisUrl,
  text,
  upstreamUrl,
  type ValueType,
  whole,
} from "./value-types.js";

/** The commands that have settings. */
export type Command = "serve" | "gateway";

/** A setting that a config file, an environment variable and, unless it is secret, a flag can give. */
export interface Setting<T> {
  readonly type: ValueType<Exclude<T, undefined>>;
  /** The command that has it. Undefined: both. */
  readonly only: Command | undefined;
  readonly group: string;
  /** Undefined: it has no value unless it is given. A function: it depends on the command. */
  readonly default: T | ((command: Command) => T);
  readonly description: string;
  /** A value as a flag writes it, for error messages. */
  readonly example: string;
  /** The flag's name if it is not the setting's own. */
  readonly flag?: string;
  /** A secret has no flag, because all users of a machine see the arguments of processes. It is never printed. */
  readonly secret?: true;
}

/** All settings of both commands, checked and complete. `table` describes them. */
export interface Settings {
  // Rules
  readonly rules: string | undefined;
  readonly rulesKey: string | undefined;
  readonly keys: Readonly<Record<string, string>>;
  readonly plan: string | undefined;
  readonly ipv6Prefix: number;
  readonly ambiguousPath: "count" | "reject";
  // Store
  readonly redis: string | undefined;
  readonly redisPasswordFile: string | undefined;
  readonly cluster: boolean;
  readonly prefix: string;
  readonly timeoutMs: number;
  readonly onStoreError: "allow" | "deny" | "memory";
  readonly secretFile: string | undefined;
  readonly keySecret: string | undefined;
  // Peers and clients
  readonly listen: string;
  readonly trustedPeers: readonly string[];
  readonly clientIpHeader: string;
  // Answers
  readonly headers: HeadersSetting;
  readonly drainMs: number;
  readonly closeMs: number;
  // The decision server
  readonly presets: readonly PresetName[] | undefined;
  readonly apiListen: string | undefined;
  readonly apiSocketMode: string;
  readonly apiTokenFile: string | undefined;
  readonly rls: string | undefined;
  readonly rlsCertFile: string | undefined;
  readonly rlsKeyFile: string | undefined;
  readonly rlsClientCaFile: string | undefined;
  // The proxy
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
  // Seeing it
  readonly admin: string | false;
  readonly adminTokenFile: string | undefined;
  readonly readyWithoutRedis: boolean;
  readonly dashboard: boolean;
  readonly dashboardActions: boolean;
  readonly metrics: boolean;
  readonly logLevel: LogLevel;
  readonly logFormat: "auto" | "json" | "pretty";
  readonly logKeys: "masked" | "hashed" | "plain";
  readonly logLimited: number;
}

/** Complete settings, and where each came from: `"--listen"`, `"FLOODGATE_LISTEN"`, `"floodgate.yaml:3"`, `"default"`. */
export interface Resolved {
  readonly settings: Settings;
  readonly origins: Readonly<Record<keyof Settings, string>>;
  /** Probable mistakes. */
  readonly notes: readonly string[];
}

export type { HeadersSetting };

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** Where the value of a key comes from. */
const keySource = /^(?:header:[!#$%&'*+.^_`|~0-9A-Za-z-]+|jwt:[^\s,]+)$/;

/** A row of the table. */
type Row<T> = readonly [
  type: Setting<T>["type"],
  example: string,
  description: string,
  byDefault?: Setting<T>["default"],
  more?: Pick<Setting<T>, "flag" | "secret">,
];

function group<Name extends keyof Settings>(
  title: string,
  rows: { readonly [Own in Name]: Row<Settings[Own]> },
  only?: Command,
): { readonly [Own in Name]: Setting<Settings[Own]> } {
  const all = Object.entries(rows as Readonly<Record<string, Row<unknown>>>);
  return Object.fromEntries(
    all.map(([name, [type, example, description, byDefault, more]]) => [
      name,
      { type, example, description, default: byDefault, group: title, only, ...more },
    ]),
  ) as never;
}

/** The settings, in the order in which help and docs show them. */
export const table: { readonly [Name in keyof Settings]-?: Setting<Settings[Name]> } = {
  ...group("Rules", {
    rules: [file(), "limits.yaml", "the rules file (YAML or JSON); changes apply at once"],
    rulesKey: [
      text("the name of a Redis key", "key"),
      "floodgate:rules",
      "the Redis key that holds the rules (see floodgate push), in place of a file",
    ],
    keys: [
      pairs("names of keys with where they come from: header:<name> or jwt:<claim>", "name=source", keySource),
      "user=header:x-user",
      "a key that rules may use: header:<name>, or jwt:<claim> of the bearer token; read from trusted peers only",
      {},
      { flag: "key" },
    ],
    plan: [
      text("header:<name> or jwt:<claim>", "source", keySource),
      "header:x-plan",
      "where the name of a request's plan comes from, for rules with plans; read from trusted peers only",
    ],
    ipv6Prefix: [whole("a number of bits", "bits", 1, 128), "64", "how many bits of an IPv6 address identify a client", 56],
    ambiguousPath: [
      choice("count", "reject"),
      "reject",
      "a path that servers read in different ways, such as /a%5c..//b: count it under each path that it may lead to, or reject it (400)",
      (command) => (command === "serve" ? "count" : "reject"),
    ],
  }),
  ...group("Store", {
    redis: [redisUrl(), "redis://127.0.0.1:6379", "count in this Redis, shared by several processes; default: in memory"],
    redisPasswordFile: [file(), "/run/secrets/redis", "a file with the password of Redis"],
    cluster: [flag(), "true", "Redis is a Cluster", false],
    prefix: [
      text("1 to 200 characters without braces", "prefix", /^[^{}]{1,200}$/u),
      "floodgate",
      "what the names of Redis keys begin with",
      "floodgate",
    ],
    timeoutMs: [milliseconds(), "100", "the longest time of a decision, in milliseconds", 100],
    onStoreError: [
      choice("allow", "deny", "memory"),
      "deny",
      "what happens to a request while Redis is down: allow it, deny it (503), or count in memory",
      "allow",
    ],
    secretFile: [
      file(),
      "/run/secrets/floodgate",
      "a file with secrets, one a line, of at least 32 characters: the first signs receipts and hashes secret keys",
    ],
    keySecret: [
      text("at least 32 characters", "secret", /^.{32,}$/s),
      "$(openssl rand -hex 32)",
      "hashes secret keys in place of the first secret of `secretFile`",
      undefined,
      { secret: true },
    ],
  }),
  ...group("Requests", {
    listen: [
      address(),
      "127.0.0.1:8080",
      "where requests arrive: host:port or unix:/path",
      (command) => (command === "serve" ? "127.0.0.1:8081" : "127.0.0.1:8080"),
    ],
    trustedPeers: [
      peers(),
      "loopback,10.0.0.0/8",
      "whose forwarded headers and keys are believed: addresses, ranges, loopback, linklocal, uniquelocal, unix (socket peers)",
      ["loopback"],
    ],
    clientIpHeader: [
      text("the name of a header", "header", /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/),
      "x-real-ip",
      "the header in which trusted peers say the client's address: x-forwarded-for, forwarded, x-real-ip, ...",
      "x-forwarded-for",
    ],
  }),
  ...group("Answers", {
    headers: [
      headerFormats(),
      "standard,legacy",
      "the rate limit headers: standard, draft-7, draft-6, legacy, a draft with legacy, or false",
      "standard",
    ],
    drainMs: [milliseconds(0), "5000", "at SIGTERM, how long /readyz fails before new connections are refused, in milliseconds", 1000],
    closeMs: [milliseconds(0), "30000", "after that, how long requests in flight may take to end, in milliseconds", 10_000],
  }),
  ...group(
    "Decision server",
    {
      presets: [
        choices(...presetNames),
        "nginx,caddy",
        "the gateways that may ask, each at /ask/<gateway>; an empty list: none; default: all",
      ],
      apiListen: [address(), "unix:/run/floodgate/api.sock", "where the JSON API listens: host:port or unix:/path; default: nowhere"],
      apiSocketMode: [
        text("the permissions of a file in octal", "mode", /^0?[0-7]{3}$/),
        "660",
        "the permissions of the JSON API's Unix socket",
        "600",
      ],
      apiTokenFile: [
        file(),
        "/run/secrets/floodgate-api",
        "a file with the bearer tokens of the JSON API, one a line; a change applies at once",
      ],
      rls: [address(), "127.0.0.1:8082", "where Envoy's rate limit service (gRPC) listens; default: nowhere"],
      rlsCertFile: [
        file(),
        "/etc/floodgate/tls.crt",
        "a file with the TLS certificate of Envoy's rate limit service, and those that lead to its root; default: no TLS",
      ],
      rlsKeyFile: [file(), "/etc/floodgate/tls.key", "a file with the private key of that certificate"],
      rlsClientCaFile: [
        file(),
        "/etc/floodgate/clients.crt",
        "a file with the certificates that clients of Envoy's rate limit service must be signed by; such clients are trusted peers",
      ],
    },
    "serve",
  ),
  ...group(
    "Proxy",
    {
      upstream: [upstreamUrl(), "http://127.0.0.1:3000", "the server that requests are passed to"],
      upstreamCaFile: [
        file(),
        "/etc/ssl/upstream.pem",
        "a file with the certificates (PEM) that an https upstream's certificate must come from",
      ],
      upstreamInsecure: [flag(), "true", "do not check the certificate of an https upstream", false],
      preserveHost: [flag(), "false", "pass the client's Host header on, in place of the upstream's own", true],
      upstreamConnectTimeoutMs: [milliseconds(), "5000", "how long a connection to the upstream may take, in milliseconds", 5000],
      upstreamTimeoutMs: [milliseconds(), "30000", "how long the upstream may take to send or take something, in milliseconds", 60_000],
      upstreamMaxConnections: [
        whole("a number of connections", "connections", 1),
        "256",
        "the most connections to the upstream, further requests wait; default: no limit",
      ],
      clientTimeoutMs: [
        milliseconds(),
        "30000",
        "how long a client may take to send its headers, or to send or take something, in milliseconds",
        60_000,
      ],
      keepAliveTimeoutMs: [milliseconds(), "75000", "how long a client's connection without a request stays open, in milliseconds", 75_000],
      tunnelTimeoutMs: [milliseconds(), "600000", "how long a WebSocket without data stays open, in milliseconds", 3_600_000],
      maxHeaderBytes: [
        whole("a number of bytes", "bytes", 1024, 2 ** 20),
        "16384",
        "the maximum size of a request's headers, in bytes",
        16_384,
      ],
      maxBodyBytes: [
        whole("a number of bytes", "bytes", 0),
        "10000000",
        "the maximum size of a request's body, in bytes (else 413); default: no limit",
      ],
      maxHeld: [
        whole("a number of requests", "requests", 0),
        "1000",
        "how many requests of leaky buckets may wait for their turn at the same time (else 503)",
        10_000,
      ],
      refundStatus: [
        text("a list of statuses such as 404 or 5xx", "statuses", statusList),
        "5xx,404",
        "the statuses of responses whose requests are refunded",
      ],
      methodOverride: [
        flag(),
        "true",
        "pass X-HTTP-Method-Override on, which lets a client avoid a rule by its method if the upstream obeys it",
        false,
      ],
      via: [
        text("a word", "name", /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/),
        "floodgate",
        "the name of this gateway in the Via header; default: no Via header",
      ],
    },
    "gateway",
  ),
  ...group("Admin and logs", {
    admin: [orFalse(address()), "127.0.0.1:9090", "where /healthz, /readyz, /metrics and the dashboard listen, or false", "127.0.0.1:9090"],
    adminTokenFile: [
      file(),
      "/run/secrets/floodgate-admin",
      "a file with the password of the dashboard; without it, only this machine sees the dashboard",
    ],
    dashboard: [flag(), "false", "show the dashboard on the admin address", true],
    dashboardActions: [flag(), "true", "let the dashboard reset, block and unblock keys; needs `adminTokenFile`", false],
    readyWithoutRedis: [flag(), "true", "/readyz answers 200 although Redis does not answer", false],
    metrics: [flag(), "false", "show /metrics on the admin address", true],
    logLevel: [choice("debug", "info", "warn", "error", "silent"), "warn", "the least important lines that are logged", "info"],
    logFormat: [choice("auto", "json", "pretty"), "json", "the format of log lines; auto: pretty on a terminal, else json", "auto"],
    logKeys: [choice("masked", "hashed", "plain"), "hashed", "how the log shows keys: 203.0.113.x, a digest, or as they are", "masked"],
    logLimited: [
      whole("a number of lines", "lines", 0, 10_000),
      "100",
      "how many limited requests a second are logged; the others are counted in one line",
      10,
    ],
  }),
};

/** The settings of a command, by name. */
export function settingsOf(command: Command): [keyof Settings, Setting<unknown>][] {
  const all = Object.entries(table) as [keyof Settings, Setting<unknown>][];
  return all.filter(([, { only }]) => only === undefined || only === command);
}

/** The value of a setting that is not given. */
export function defaultOf(setting: Setting<unknown>, command: Command): unknown {
  return typeof setting.default === "function" ? (setting.default as (command: Command) => unknown)(command) : setting.default;
}

/** `trustedPeers` as a flag: `--trusted-peers`. */
export function flagOf(name: keyof Settings): string {
  return `--${table[name].flag ?? name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** `trustedPeers` as an environment variable: `FLOODGATE_TRUSTED_PEERS`. */
export function variableOf(name: keyof Settings): string {
  return `FLOODGATE_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}
