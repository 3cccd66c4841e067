import { parseKeyName } from "@floodgate/core/rules";
import type { Settings } from "../config/settings.js";
import type { GatewayRequest } from "./request.js";

/**
 * Reads what a source (`header:x-user`, `jwt:tenant`) says of a request. It answers nothing for a request of an untrusted peer, because anyone
 * can write a header or a token.
 */
export function sourceReader(source: string): (request: GatewayRequest) => string | undefined {
  const [, kind, name = ""] = /^(header|jwt):(.*)$/s.exec(source) ?? [];
  const header = name.toLowerCase();
  const read = kind === "jwt" ? (request: GatewayRequest) => claimOf(request, name) : (request: GatewayRequest) => request.header(header);
  return (request) => {
    const value = request.fromTrustedPeer ? read(request) : undefined;
    return value === "" ? undefined : value;
  };
}

/** The header that a source (`header:x-user`, `jwt:tenant`) is read from, in lower case. */
export function headerOfSource(source: string): string {
  return source.startsWith("header:") ? source.slice("header:".length).toLowerCase() : "authorization";
}

/** The headers of the settings `keys` and `plan`, in lower case. */
export function headersOfSources({ keys, plan }: Settings): string[] {
  return [...Object.values(keys), ...(plan === undefined ? [] : [plan])].map(headerOfSource);
}

/** The names in a rule's `key`, without `secret:`. */
export function keyNames(key: unknown): string[] {
  return [key].flat().flatMap((part) => (typeof part === "string" ? [parseKeyName(part).name] : []));
}

/** A longer token is not read. */
const maxTokenLength = 8192;

/**
 * A claim of the bearer token: a string, a number or a boolean. The token's signature is not checked here: the gateway that asks has checked
 * it.
 */
function claimOf(request: GatewayRequest, claim: string): string | undefined {
  const authorization = request.header("authorization");
  if (authorization === undefined || authorization.length > maxTokenLength) return undefined;
  const [, payload] = /^bearer +[\w-]+\.([\w-]+)\.[\w-]*$/i.exec(authorization) ?? [];
  if (payload === undefined) return undefined;
  try {
    const claims: unknown = JSON.parse(withLongNumbersAsTexts(Buffer.from(payload, "base64url").toString()));
    // Without a prototype, so that `constructor` is not a claim.
    const value: unknown = typeof claims === "object" ? Object.assign(Object.create(null), claims)[claim] : undefined;
    return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? `${value}` : undefined;
  } catch {
    return undefined;
  }
}

/** Else users with neighbouring ids above 2^53 would be one, because no number tells them apart. */
function withLongNumbersAsTexts(json: string): string {
  if (!/\d{16}/.test(json)) return json;
  return json.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g, (token) => (/^-?\d{16,}$/.test(token) ? `"${token}"` : token));
}
