import type { IncomingMessage } from "node:http";

/** The gateways that may ask. */
export const presetNames = ["nginx", "caddy", "traefik", "haproxy", "apache", "envoy", "generic"] as const;

export type PresetName = (typeof presetNames)[number];

/** What one gateway sends, and what it makes of the answer. */
export interface Preset {
  readonly name: PresetName;
  /** The headers that say what the gateway asks about. Undefined for a gateway that repeats the request itself under a path of ours. */
  readonly headers?: { readonly method: string; readonly target: string; readonly host: string };
  /** The header with the client's address. Undefined: the one of the setting `clientIpHeader`. */
  readonly clientIpHeader?: string;
  /** The status that lets a request pass. */
  readonly allowed: 200 | 204;
  /** The status of each denial, for a gateway that takes no other. The real one is in `X-Floodgate-Status`. */
  readonly denied?: 403;
}

const forwarded: Omit<Preset, "name"> = {
  headers: { method: "x-forwarded-method", target: "x-forwarded-uri", host: "x-forwarded-host" },
  allowed: 204,
};

/** Caddy's `forward_auth` and Traefik's ForwardAuth copy the status, headers and body of a denial. The scripts of the others read the status. */
const presets: Readonly<Record<PresetName, Omit<Preset, "name">>> = {
  // `auth_request` allows 2xx, denies 401 and 403, and makes 500 of everything else.
  nginx: {
    headers: { method: "x-original-method", target: "x-original-uri", host: "x-original-host" },
    clientIpHeader: "x-original-for",
    allowed: 204,
    denied: 403,
  },
  caddy: forwarded,
  traefik: forwarded,
  haproxy: forwarded,
  apache: forwarded,
  generic: forwarded,
  // `ext_authz` repeats the method, the headers and, after its `path_prefix`, the path. It allows 200 only, and takes 5xx for an error.
  envoy: { allowed: 200 },
};

/** What the first bytes of a path say. */
export interface FoundPreset {
  readonly preset: Preset;
  /** What comes after the path of the preset. */
  readonly rest: string;
}

/** Makes a function that finds the preset of a path among those that are enabled. It answers undefined if the path is no preset's. */
export function presetFinder(names: readonly PresetName[] = presetNames): (path: string) => FoundPreset | undefined {
  const enabled = new Map<string | undefined, Preset>(names.map((name) => [name, { name, ...presets[name] }]));
  return (path) => {
    const [, name, rest = ""] = /^\/ask\/([a-z]+)(.*)$/s.exec(path) ?? [];
    const preset = enabled.get(name);
    // `/ask/nginx` or `/ask/nginx?x`; for a gateway that repeats the request, `/ask/envoy/users?x` and `/ask/envoy*` too.
    const ends = preset?.headers === undefined ? /^(?:[?/*]|$)/ : /^(?:\?|$)/;
    return preset !== undefined && ends.test(rest) ? { preset, rest } : undefined;
  };
}

/** What a gateway asks about. */
export interface Subject {
  readonly method: string;
  /** The request's target with its query, as the client sent it. */
  readonly target: string;
  readonly host: string | undefined;
}

/** Why an ask says nothing that could be decided. */
export interface Unreadable {
  /** Whether the gateway's config must be the reason. If not, a client may have caused it. */
  readonly isConfig: boolean;
  readonly reason: string;
}

/** Reads what a gateway asks about. */
export function readSubject({ preset, rest }: FoundPreset, message: IncomingMessage): Subject | Unreadable {
  const { headers } = message;
  const names = preset.headers;
  if (names === undefined) {
    return checked({
      method: message.method as string,
      target: rest.startsWith("/") || rest === "*" ? rest : `/${rest}`,
      host: headers.host,
    });
  }
  const method = headers[names.method];
  const target = headers[names.target];
  const missing = method === undefined ? names.method : target === undefined ? names.target : undefined;
  if (missing !== undefined) return { isConfig: true, reason: `The header ${missing} is missing: the gateway must set it.` };
  return checked({ method, target, host: headers[names.host] } as Subject);
}

/** Two lines of one header are joined by ", ", which none of the three may contain. */
function checked(subject: Subject): Subject | Unreadable {
  const { method, target, host } = subject;
  if (!isToken.test(method)) return { isConfig: false, reason: "The method is no HTTP method." };
  if (hasSpace.test(target)) return { isConfig: false, reason: "The target has a space or control character." };
  if (host !== undefined && hasSpace.test(host)) return { isConfig: false, reason: "The host has a space or control character." };
  return subject;
}

const isToken = /^[!#$%&'*+.^_`|~\w-]{1,64}$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const hasSpace = /[\x00-\x20\x7f]/;
