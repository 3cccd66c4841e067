import { type NodeCrypto, nodeCrypto } from "./runtime.js";
import { hex, hmacSha256Bytes, sha256Bytes, utf8 } from "./sha256.js";

/** Hashes strings as UTF-8, to hexadecimal digits. Different lone surrogates have different hashes: see `utf8`. */
export interface Hashes {
  sha256(text: string): string;
  hmacSha256(secret: string, text: string): string;
}

/** For runtimes without `node:crypto`. */
export const ownHashes: Hashes = {
  sha256: (text) => hex(sha256Bytes(utf8(text))),
  hmacSha256: (secret, text) => hex(hmacSha256Bytes(utf8(secret), utf8(text))),
};

/** Much faster, with the same digests. */
export function nodeHashes({ hash, createHash, createHmac }: NodeCrypto): Hashes {
  return {
    sha256:
      hash === undefined
        ? (text) => createHash("sha256").update(bytesOf(text)).digest("hex")
        : (text) => hash("sha256", bytesOf(text), "hex"),
    hmacSha256: (secret, text) => createHmac("sha256", bytesOf(secret)).update(bytesOf(text)).digest("hex"),
  };
}

/** `node:crypto` encodes strings itself, but turns all lone surrogates into U+FFFD. */
function bytesOf(text: string): string | Uint8Array {
  return loneSurrogate.test(text) ? utf8(text) : text;
}

const loneSurrogate = /\p{Surrogate}/u;

const crypto = nodeCrypto();
const hashes = crypto === undefined ? ownHashes : nodeHashes(crypto);

/** SHA-256 of a string as UTF-8, in 64 hexadecimal digits. Synchronous, and the same in every runtime. */
export function sha256(text: string): string {
  return hashes.sha256(text);
}

/** HMAC-SHA-256 of a string with a secret, both as UTF-8, in 64 hexadecimal digits. Synchronous, and the same in every runtime. */
export function hmacSha256(secret: string, text: string): string {
  return hashes.hmacSha256(secret, text);
}
