import { statusList } from "@floodgate/core/rules";
import { presetNames } from "../ask/presets.js";
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

/** Complete settings, and where each came from: `"--listen"`, `"FLOODGATE_LISTEN"`, `"floodgate.yaml:3"`, `"default"`. */
export interface Resolved {
  readonly settings: Settings;
  readonly origins: Readonly<Record<keyof Settings, string>>;
  /** Probable mistakes. */
  readonly notes: readonly string[];
}

export type { HeadersSetting };

export type LogLevel = Settings["logLevel"];

/** Where the value of a key comes from. */
const keySource = /^(?:header:[!#$%&'*+.^_`|~0-9A-Za-z-]+|jwt:[^\s,]+)$/;

/** A setting, before it is in a group. */
type Row<T> = Omit<Setting<T>, "group" | "only">;

/** Without a default, the setting may be undefined. */
function setting<T>(type: ValueType<T>, example: string, description: string, byDefault?: undefined, more?: More): Row<T | undefined>;
function setting<T>(
  type: ValueType<T>,
  example: string,
  description: string,
  byDefault: T | ((command: Command) => T),
  more?: More,
): Row<T>;
function setting(type: ValueType<unknown>, example: string, description: string, byDefault?: unknown, more?: More): Row<unknown> {
  return { type: type as Setting<unknown>["type"], example, description, default: byDefault, ...more };
}

type More = Pick<Setting<unknown>, "flag" | "secret">;

/** @param only the command that has these settings. Undefined: both. */
function group<Values>(
  title: string,
  only: Command | undefined,
  rows: { readonly [Name in keyof Values]: Row<Values[Name]> },
): { readonly [Name in keyof Values]: Setting<Values[Name]> } {
  const all = Object.entries(rows as Readonly<Record<string, Row<unknown>>>);
  return Object.fromEntries(all.map(([name, row]) => [name, { ...row, group: title, only }])) as never;
}

/** The settings, in the order in which help and docs show them. */
export const table = {
  ...group("Rules", undefined, {
    rules: setting(file(), "limits.yaml", "the rules file (YAML or JSON); changes apply at once"),
    rulesKey: setting(
      text("the name of a Redis key", "key"),
      "floodgate:rules",
      "the Redis key that holds the rules (see floodgate push), in place of a file",
    ),
    keys: setting(
      pairs("names of keys with where they come from: header:<name> or jwt:<claim>", "name=source", keySource),
      "user=header:x-user",
      "a key that rules may use: header:<name>, or jwt:<claim> of the bearer token; read from trusted peers only",
      {},
      { flag: "key" },
    ),
    plan: setting(
      text("header:<name> or jwt:<claim>", "source", keySource),
      "header:x-plan",
      "where the name of a request's plan comes from, for rules with plans; read from trusted peers only",
    ),
    ipv6Prefix: setting(whole("a number of bits", "bits", 1, 128), "64", "how many bits of an IPv6 address identify a client", 56),
    ambiguousPath: setting(
      choice("count", "reject"),
      "reject",
      "a path that servers read in different ways, such as /a%5c..//b: count it under each path that it may lead to, or reject it (400)",
      (command) => (command === "serve" ? "count" : "reject"),
    ),
  }),
  ...group("Store", undefined, {
    redis: setting(redisUrl(), "redis://127.0.0.1:6379", "count in this Redis, shared by several processes; default: in memory"),
    redisPasswordFile: setting(file(), "/run/secrets/redis", "a file with the password of Redis"),
    cluster: setting(flag(), "true", "Redis is a Cluster", false),
    prefix: setting(
      text("1 to 200 characters without braces", "prefix", /^[^{}]{1,200}$/u),
      "floodgate",
      "what the names of Redis keys begin with",
      "floodgate",
    ),
    timeoutMs: setting(milliseconds(), "100", "the longest time of a decision, in milliseconds", 100),
    onStoreError: setting(
      choice("allow", "deny", "memory"),
      "deny",
      "what happens to a request while Redis is down: allow it, deny it (503), or count in memory",
      "allow",
    ),
    secretFile: setting(
      file(),
      "/run/secrets/floodgate",
      "a file with secrets, one a line, of at least 32 characters: the first signs receipts and hashes secret keys",
    ),
    keySecret: setting(
      text("at least 32 characters", "secret", /^.{32,}$/s),
      "$(openssl rand -hex 32)",
      "hashes secret keys in place of the first secret of `secretFile`",
      undefined,
      { secret: true },
    ),
  }),
  ...group("Requests", undefined, {
    listen: setting(address(), "127.0.0.1:8080", "where requests arrive: host:port or unix:/path", (command) =>
      command === "serve" ? "127.0.0.1:8081" : "127.0.0.1:8080",
    ),
    trustedPeers: setting(
      peers(),
      "loopback,10.0.0.0/8",
      "whose forwarded headers and keys are believed: addresses, ranges, loopback, linklocal, uniquelocal, unix (socket peers)",
      ["loopback"],
    ),
    clientIpHeader: setting(
      text("the name of a header", "header", /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/),
      "x-real-ip",
      "the header in which trusted peers say the client's address: x-forwarded-for, forwarded, x-real-ip, ...",
      "x-forwarded-for",
    ),
  }),
  ...group("Answers", undefined, {
    headers: setting(
      headerFormats(),
      "standard,legacy",
      "the rate limit headers: standard, draft-7, draft-6, legacy, a draft with legacy, or false",
      "standard",
    ),
    drainMs: setting(
      milliseconds(0),
      "5000",
      "at SIGTERM, how long /readyz fails before new connections are refused, in milliseconds",
      1000,
    ),
    closeMs: setting(milliseconds(0), "30000", "after that, how long requests in flight may take to end, in milliseconds", 10_000),
  }),
  ...group("Decision server", "serve", {
    presets: setting(
      choices(...presetNames),
      "nginx,caddy",
      "the gateways that may ask, each at /ask/<gateway>; an empty list: none; default: all",
    ),
    apiListen: setting(address(), "unix:/run/floodgate/api.sock", "where the JSON API listens: host:port or unix:/path; default: nowhere"),
    apiSocketMode: setting(
      text("the permissions of a file in octal", "mode", /^0?[0-7]{3}$/),
      "660",
      "the permissions of the JSON API's Unix socket",
      "600",
    ),
    apiTokenFile: setting(
      file(),
      "/run/secrets/floodgate-api",
      "a file with the bearer tokens of the JSON API, one a line; a change applies at once",
    ),
    rls: setting(address(), "127.0.0.1:8082", "where Envoy's rate limit service (gRPC) listens; default: nowhere"),
    rlsCertFile: setting(
      file(),
      "/etc/floodgate/tls.crt",
      "a file with the TLS certificate of Envoy's rate limit service, and those that lead to its root; default: no TLS",
    ),
    rlsKeyFile: setting(file(), "/etc/floodgate/tls.key", "a file with the private key of that certificate"),
    rlsClientCaFile: setting(
      file(),
      "/etc/floodgate/clients.crt",
      "a file with the certificates that clients of Envoy's rate limit service must be signed by; such clients are trusted peers",
    ),
  }),
  ...group("Proxy", "gateway", {
    upstream: setting(upstreamUrl(), "http://127.0.0.1:3000", "the server that requests are passed to"),
    upstreamCaFile: setting(
      file(),
      "/etc/ssl/upstream.pem",
      "a file with the certificates (PEM) that an https upstream's certificate must come from",
    ),
    upstreamInsecure: setting(flag(), "true", "do not check the certificate of an https upstream", false),
    preserveHost: setting(flag(), "false", "pass the client's Host header on, in place of the upstream's own", true),
    upstreamConnectTimeoutMs: setting(milliseconds(), "5000", "how long a connection to the upstream may take, in milliseconds", 5000),
    upstreamTimeoutMs: setting(
      milliseconds(),
      "30000",
      "how long the upstream may take to send or take something, in milliseconds",
      60_000,
    ),
    upstreamMaxConnections: setting(
      whole("a number of connections", "connections", 1),
      "256",
      "the most connections to the upstream, further requests wait; default: no limit",
    ),
    clientTimeoutMs: setting(
      milliseconds(),
      "30000",
      "how long a client may take to send its headers, or to send or take something, in milliseconds",
      60_000,
    ),
    keepAliveTimeoutMs: setting(
      milliseconds(),
      "75000",
      "how long a client's connection without a request stays open, in milliseconds",
      75_000,
    ),
    tunnelTimeoutMs: setting(milliseconds(), "600000", "how long a WebSocket without data stays open, in milliseconds", 3_600_000),
    maxHeaderBytes: setting(
      whole("a number of bytes", "bytes", 1024, 2 ** 20),
      "16384",
      "the maximum size of a request's headers, in bytes",
      16_384,
    ),
    maxBodyBytes: setting(
      whole("a number of bytes", "bytes", 0),
      "10000000",
      "the maximum size of a request's body, in bytes (else 413); default: no limit",
    ),
    maxHeld: setting(
      whole("a number of requests", "requests", 0),
      "1000",
      "how many requests of leaky buckets may wait for their turn at the same time (else 503)",
      10_000,
    ),
    refundStatus: setting(
      text("a list of statuses such as 404 or 5xx", "statuses", statusList),
      "5xx,404",
      "the statuses of responses whose requests are refunded",
    ),
    methodOverride: setting(
      flag(),
      "true",
      "pass X-HTTP-Method-Override on, which lets a client avoid a rule by its method if the upstream obeys it",
      false,
    ),
    via: setting(
      text("a word", "name", /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/),
      "floodgate",
      "the name of this gateway in the Via header; default: no Via header",
    ),
  }),
  ...group("Admin and logs", undefined, {
    admin: setting(
      orFalse(address()),
      "127.0.0.1:9090",
      "where /healthz, /readyz, /metrics and the dashboard listen, or false",
      "127.0.0.1:9090",
    ),
    adminTokenFile: setting(
      file(),
      "/run/secrets/floodgate-admin",
      "a file with the password of the dashboard; without it, only this machine sees the dashboard",
    ),
    dashboard: setting(flag(), "false", "show the dashboard on the admin address", true),
    dashboardActions: setting(flag(), "true", "let the dashboard reset, block and unblock keys; needs `adminTokenFile`", false),
    readyWithoutRedis: setting(flag(), "true", "/readyz answers 200 although Redis does not answer", false),
    metrics: setting(flag(), "false", "show /metrics on the admin address", true),
    logLevel: setting(choice("debug", "info", "warn", "error", "silent"), "warn", "the least important lines that are logged", "info"),
    logFormat: setting(choice("auto", "json", "pretty"), "json", "the format of log lines; auto: pretty on a terminal, else json", "auto"),
    logKeys: setting(
      choice("masked", "hashed", "plain"),
      "hashed",
      "how the log shows keys: 203.0.113.x, a digest, or as they are",
      "masked",
    ),
    logLimited: setting(
      whole("a number of lines", "lines", 0, 10_000),
      "100",
      "how many limited requests a second are logged; the others are counted in one line",
      10,
    ),
  }),
};

/** All settings of both commands, checked and complete. `docs/gateway-settings.md` says what each means. */
export type Settings = {
  readonly [Name in keyof typeof table]: (typeof table)[Name] extends Setting<infer Value> ? Value : never;
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
