import { countedText, type Key, KeyDigest, type KeyPart, namedAddress, secretPrefix, wholeText } from "../limits/key.js";
import { FloodgateError } from "../support/errors.js";
import { hmacSha256, sha256 } from "../support/hash.js";
import { secretText } from "../support/options.js";

/** Headers that carry credentials: as keys they are always secret. */
export const secretHeaders: ReadonlySet<string> = new Set(
  (
    "authorization proxy-authorization x-authorization cookie api-key apikey x-api-key x-apikey x-api-token x-auth-key " +
    "x-auth-token x-access-token x-session-token x-csrf-token x-xsrf-token x-client-secret private-token job-token " +
    "x-gitlab-token x-vault-token x-amz-security-token x-amzn-oidc-accesstoken x-amzn-oidc-data x-forwarded-access-token " +
    "x-functions-key x-goog-api-key x-rapidapi-key x-shopify-access-token ocp-apim-subscription-key cf-access-client-secret " +
    "cf-access-jwt-assertion"
  ).split(" "),
);

/** Makes digests differ from SHA-256 hashes and HMACs that somebody computes of the same texts for another purpose. */
const domain = "floodgate:secret-key:";

const shownDigest = /^secret:[0-9a-f]{64}$/;

/** Makes the digests of secret keys: SHA-256, or HMAC-SHA-256 with `keySecret`. */
export class KeyDigests {
  readonly #secret: string | undefined;

  constructor(secret?: string) {
    this.#secret = secret;
  }

  /** @throws FloodgateError `FLOODGATE_INVALID_KEY` if the key is invalid, without showing it. */
  digest(key: Key): KeyDigest {
    const text = domain + keyToDigest(key);
    return new KeyDigest(secretPrefix + (this.#secret === undefined ? sha256(text) : hmacSha256(this.#secret, text)));
  }

  /** The digest of a key as somebody names it to a limiter or in `exempt`: the key itself, or its digest as events show it. */
  named(key: Key): KeyDigest {
    return typeof key === "string" && shownDigest.test(key) ? new KeyDigest(key) : this.digest(key);
  }
}

/**
 * The digests of a middleware with these options. `keySecret: undefined` is an error: it is an environment variable that is not set.
 * @throws FloodgateError unless a given `keySecret` is a text of at least 32 characters; the error does not show it.
 */
export function keyDigests(where: string, options: { readonly keySecret?: unknown }): KeyDigests {
  if (!("keySecret" in options)) return new KeyDigests();
  return new KeyDigests(secretText(where, "keySecret", options.keySecret, "KEY_SECRET"));
}

function keyToDigest(key: Key): string {
  try {
    return wholeText(key);
  } catch {
    // The original error shows names of properties, which may be part of the secret.
    throw new FloodgateError(
      "FLOODGATE_INVALID_KEY",
      `A secret key must be a string, a finite number, a bigint, a boolean, or a tuple of those, but was ${Array.isArray(key) ? "another array" : `of type ${typeof key}`}. It is not shown here.`,
    );
  }
}

/** What a rule's key or a part of it is: the client's address, a secret, or anything else. */
export type KeyKind = "address" | "secret" | "plain";

/**
 * The text of a key that somebody names to a limiter or in `exempt`. Undefined if the rule's key is a list of names, and `key` is not a
 * tuple of the same length.
 * @param kinds the kind of each part of a list of names, or of the whole key.
 * @param ipv6Prefix turns addresses of any notation into the text that the rule counts. Without it, addresses stay as they are.
 */
export function namedKeyText(key: Key, kinds: KeyKind | readonly KeyKind[], digests: KeyDigests, ipv6Prefix?: number): string | undefined {
  const counted = <Part extends Key>(part: Part, kind: KeyKind | undefined): Part | KeyDigest | string => {
    if (kind === "secret") return digests.named(part);
    if (kind !== "address" || ipv6Prefix === undefined || typeof part !== "string") return part;
    return namedAddress(part, ipv6Prefix) ?? part;
  };
  if (typeof kinds === "string") return countedText(counted(key, kinds));
  if (!Array.isArray(key) || key.length !== kinds.length) return undefined;
  return countedText((key as KeyPart[]).map((part, i) => counted(part, kinds[i])));
}
