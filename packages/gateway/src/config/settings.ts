import { z } from "zod";
import { type PresetName, presetNames } from "../ask/presets.js";
import {
  address,
  type Command,
  choice,
  choices,
  file,
  flag,
  type Kind,
  milliseconds,
  orFalse,
  pairs,
  peers,
  redisUrl,
  type Setting,
  text,
  whole,
} from "./kinds.js";
import { type ProxySettings, proxyTable } from "./proxy-settings.js";

export type { Command, Setting };

/** All settings of both commands, checked and complete. `table` describes them. */
export interface Settings extends ProxySettings {
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
  // Who asks
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

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** The formats of rate limit headers, as `rateLimit` takes them. */
export type HeadersSetting =
  | "standard"
  | "draft-7"
  | "draft-6"
  | "legacy"
  | readonly ["standard" | "draft-7" | "draft-6", "legacy"]
  | false;

const headerWords = ["standard", "draft-7", "draft-6", "legacy"] as const;

const headers: Kind<HeadersSetting> = orFalse({
  schema: z.union([z.enum(headerWords), z.tuple([z.enum(["standard", "draft-7", "draft-6"]), z.literal("legacy")])]) as z.ZodType<
    Exclude<HeadersSetting, false>
  >,
  what: `one of ${headerWords.join(", ")}, or a draft with legacy`,
  placeholder: "formats",
  fromText: (text) => (text.includes(",") ? text.split(",").map((word) => word.trim()) : text),
});

/** Where the value of a key comes from. */
const keySource = /^(?:header:[!#$%&'*+.^_`|~0-9A-Za-z-]+|jwt:[^\s,]+)$/;

/** The settings, in the order in which help and docs show them. */
export const table: { readonly [Name in keyof Settings]-?: Setting<Settings[Name]> } = {
  rules: {
    kind: file(),
    group: "Rules",
    default: undefined,
    description: "the rules file (YAML or JSON); changes apply at once",
    example: "limits.yaml",
  },
  rulesKey: {
    kind: text("the name of a Redis key", "key"),
    group: "Rules",
    default: undefined,
    description: "the Redis key that holds the rules (see floodgate push), in place of a file",
    example: "floodgate:rules",
  },
  keys: {
    kind: pairs("names of keys with where they come from: header:<name> or jwt:<claim>", "name=source", keySource),
    flag: "key",
    group: "Rules",
    default: {},
    description: "a key that rules may use: header:<name>, or jwt:<claim> of the bearer token; read from trusted peers only",
    example: "user=header:x-user",
  },
  plan: {
    kind: text("header:<name> or jwt:<claim>", "source", keySource),
    group: "Rules",
    default: undefined,
    description: "where the name of a request's plan comes from, for rules with plans; read from trusted peers only",
    example: "header:x-plan",
  },
  ipv6Prefix: {
    kind: whole("a number of bits", "bits", 1, 128),
    group: "Rules",
    default: 56,
    description: "how many bits of an IPv6 address identify a client",
    example: "64",
  },
  ambiguousPath: {
    kind: choice("count", "reject"),
    group: "Rules",
    default: (command) => (command === "serve" ? "count" : "reject"),
    description:
      "a path that servers read in different ways, such as /a%5c..//b: count it under each path that it may lead to, or reject it (400)",
    example: "reject",
  },
  redis: {
    kind: redisUrl(),
    group: "Store",
    default: undefined,
    description: "count in this Redis, shared by several processes; default: in memory",
    example: "redis://127.0.0.1:6379",
  },
  redisPasswordFile: {
    kind: file(),
    group: "Store",
    default: undefined,
    description: "a file with the password of Redis",
    example: "/run/secrets/redis",
  },
  cluster: { kind: flag(), group: "Store", default: false, description: "Redis is a Cluster", example: "true" },
  prefix: {
    kind: text("1 to 200 characters without braces", "prefix", /^[^{}]{1,200}$/u),
    group: "Store",
    default: "floodgate",
    description: "what the names of Redis keys begin with",
    example: "floodgate",
  },
  timeoutMs: {
    kind: milliseconds(),
    group: "Store",
    default: 100,
    description: "the longest time of a decision, in milliseconds",
    example: "100",
  },
  onStoreError: {
    kind: choice("allow", "deny", "memory"),
    group: "Store",
    default: "allow",
    description: "what happens to a request while Redis is down: allow it, deny it (503), or count in memory",
    example: "deny",
  },
  secretFile: {
    kind: file(),
    group: "Store",
    default: undefined,
    description: "a file with secrets, one a line, of at least 32 characters: the first signs receipts and hashes secret keys",
    example: "/run/secrets/floodgate",
  },
  keySecret: {
    kind: text("at least 32 characters", "secret", /^.{32,}$/s),
    group: "Store",
    default: undefined,
    description: "hashes secret keys in place of the first secret of `secretFile`",
    example: "$(openssl rand -hex 32)",
    secret: true,
  },
  listen: {
    kind: address(),
    group: "Requests",
    default: (command) => (command === "serve" ? "127.0.0.1:8081" : "127.0.0.1:8080"),
    description: "where requests arrive: host:port or unix:/path",
    example: "127.0.0.1:8080",
  },
  trustedPeers: {
    kind: peers(),
    group: "Requests",
    default: ["loopback"],
    description: "whose forwarded headers and keys are believed: addresses, ranges, loopback, linklocal, uniquelocal, unix (socket peers)",
    example: "loopback,10.0.0.0/8",
  },
  clientIpHeader: {
    kind: text("the name of a header", "header", /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/),
    group: "Requests",
    default: "x-forwarded-for",
    description: "the header in which trusted peers say the client's address: x-forwarded-for, forwarded, x-real-ip, ...",
    example: "x-real-ip",
  },
  headers: {
    kind: headers,
    group: "Answers",
    default: "standard",
    description: "the rate limit headers: standard, draft-7, draft-6, legacy, a draft with legacy, or false",
    example: "standard,legacy",
  },
  drainMs: {
    kind: milliseconds(0),
    group: "Answers",
    default: 1000,
    description: "at SIGTERM, how long /readyz fails before new connections are refused, in milliseconds",
    example: "5000",
  },
  closeMs: {
    kind: milliseconds(0),
    group: "Answers",
    default: 10_000,
    description: "after that, how long requests in flight may take to end, in milliseconds",
    example: "30000",
  },
  presets: {
    kind: choices(...presetNames),
    only: "serve",
    group: "Decision server",
    default: undefined,
    description: "the gateways that may ask, each at /ask/<gateway>; an empty list: none; default: all",
    example: "nginx,caddy",
  },
  apiListen: {
    kind: address(),
    only: "serve",
    group: "Decision server",
    default: undefined,
    description: "where the JSON API listens: host:port or unix:/path; default: nowhere",
    example: "unix:/run/floodgate/api.sock",
  },
  apiSocketMode: {
    kind: text("the permissions of a file in octal", "mode", /^0?[0-7]{3}$/),
    only: "serve",
    group: "Decision server",
    default: "600",
    description: "the permissions of the JSON API's Unix socket",
    example: "660",
  },
  apiTokenFile: {
    kind: file(),
    only: "serve",
    group: "Decision server",
    default: undefined,
    description: "a file with the bearer tokens of the JSON API, one a line; a change applies at once",
    example: "/run/secrets/floodgate-api",
  },
  rls: {
    kind: address(),
    only: "serve",
    group: "Decision server",
    default: undefined,
    description: "where Envoy's rate limit service (gRPC) listens; default: nowhere",
    example: "127.0.0.1:8082",
  },
  rlsCertFile: {
    kind: file(),
    only: "serve",
    group: "Decision server",
    default: undefined,
    description: "a file with the TLS certificate of Envoy's rate limit service, and those that lead to its root; default: no TLS",
    example: "/etc/floodgate/tls.crt",
  },
  rlsKeyFile: {
    kind: file(),
    only: "serve",
    group: "Decision server",
    default: undefined,
    description: "a file with the private key of that certificate",
    example: "/etc/floodgate/tls.key",
  },
  rlsClientCaFile: {
    kind: file(),
    only: "serve",
    group: "Decision server",
    default: undefined,
    description:
      "a file with the certificates that clients of Envoy's rate limit service must be signed by; such clients are trusted peers",
    example: "/etc/floodgate/clients.crt",
  },
  ...proxyTable,
  admin: {
    kind: orFalse(address()),
    group: "Admin and logs",
    default: "127.0.0.1:9090",
    description: "where /healthz, /readyz, /metrics and the dashboard listen, or false",
    example: "127.0.0.1:9090",
  },
  adminTokenFile: {
    kind: file(),
    group: "Admin and logs",
    default: undefined,
    description: "a file with the password of the dashboard; without it, only this machine sees the dashboard",
    example: "/run/secrets/floodgate-admin",
  },
  dashboard: {
    kind: flag(),
    group: "Admin and logs",
    default: true,
    description: "show the dashboard on the admin address",
    example: "false",
  },
  dashboardActions: {
    kind: flag(),
    group: "Admin and logs",
    default: false,
    description: "let the dashboard reset, block and unblock keys; needs `adminTokenFile`",
    example: "true",
  },
  readyWithoutRedis: {
    kind: flag(),
    group: "Admin and logs",
    default: false,
    description: "/readyz answers 200 although Redis does not answer",
    example: "true",
  },
  metrics: { kind: flag(), group: "Admin and logs", default: true, description: "show /metrics on the admin address", example: "false" },
  logLevel: {
    kind: choice("debug", "info", "warn", "error", "silent"),
    group: "Admin and logs",
    default: "info",
    description: "the least important lines that are logged",
    example: "warn",
  },
  logFormat: {
    kind: choice("auto", "json", "pretty"),
    group: "Admin and logs",
    default: "auto",
    description: "the format of log lines; auto: pretty on a terminal, else json",
    example: "json",
  },
  logKeys: {
    kind: choice("masked", "hashed", "plain"),
    group: "Admin and logs",
    default: "masked",
    description: "how the log shows keys: 203.0.113.x, a digest, or as they are",
    example: "hashed",
  },
  logLimited: {
    kind: whole("a number of lines", "lines", 0, 10_000),
    group: "Admin and logs",
    default: 10,
    description: "how many limited requests a second are logged; the others are counted in one line",
    example: "100",
  },
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
