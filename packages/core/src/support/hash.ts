import { type NodeCrypto, nodeCrypto, utf8 } from "./runtime.js";

/** Hashes strings as UTF-8, to hexadecimal digits. Different lone surrogates have different hashes: see `bytesOf`. */
export interface Hashes {
  sha256(text: string): string;
  hmacSha256(secret: string, text: string): string;
}

/** For runtimes without `node:crypto`. */
export const ownHashes: Hashes = {
  sha256: (text) => hex(sha256Bytes(bytesOf(text))),
  hmacSha256: (secret, text) => hex(hmacSha256Bytes(bytesOf(secret), bytesOf(text))),
};

/** Much faster, with the same digests. */
export function nodeHashes({ hash, createHash, createHmac }: NodeCrypto): Hashes {
  return {
    sha256:
      hash === undefined
        ? (text) => createHash("sha256").update(encodable(text)).digest("hex")
        : (text) => hash("sha256", encodable(text), "hex"),
    hmacSha256: (secret, text) => createHmac("sha256", encodable(secret)).update(encodable(text)).digest("hex"),
  };
}

/** `node:crypto` encodes strings itself, but turns all lone surrogates into U+FFFD. */
function encodable(text: string): string | Uint8Array {
  return loneSurrogate.test(text) ? bytesOf(text) : text;
}

const loneSurrogate = /\p{Surrogate}/u;

const crypto = nodeCrypto();
const hashes = crypto === undefined ? ownHashes : nodeHashes(crypto);

/** SHA-256 of a string as UTF-8, in 64 hexadecimal digits. Synchronous, and the same in every runtime. */
export const sha256: Hashes["sha256"] = hashes.sha256;

/** HMAC-SHA-256 of a string with a secret, both as UTF-8, in 64 hexadecimal digits. Synchronous, and the same in every runtime. */
export const hmacSha256: Hashes["hmacSha256"] = hashes.hmacSha256;

// SHA-256 (FIPS 180-4) and HMAC (RFC 2104) in plain TypeScript, for runtimes without `node:crypto`. Web Crypto cannot be used, because it is
// asynchronous.

const blockBytes = 64;

/** UTF-8, which cannot encode lone surrogates: a text that has some becomes JSON, and its first byte is one that UTF-8 never has. */
function bytesOf(text: string): Uint8Array {
  if (!loneSurrogate.test(text)) return utf8(text);
  const bytes = utf8(JSON.stringify(text));
  bytes[0] = 0xff;
  return bytes;
}

function hex(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += (byte < 16 ? "0" : "") + byte.toString(16);
  return text;
}

function hmacSha256Bytes(secret: Uint8Array, message: Uint8Array): Uint8Array {
  const key = secret.length > blockBytes ? sha256Bytes(secret) : secret;
  const hashed = (padding: number, rest: Uint8Array): Uint8Array => {
    const bytes = new Uint8Array(blockBytes + rest.length).fill(padding, 0, blockBytes);
    for (let i = 0; i < key.length; i++) bytes[i] = padding ^ (key[i] as number);
    bytes.set(rest, blockBytes);
    return sha256Bytes(bytes);
  };
  return hashed(0x5c, hashed(0x36, message));
}

function sha256Bytes(bytes: Uint8Array): Uint8Array {
  let state: Uint32Array = initial;
  const words = new Uint32Array(64);
  // Padding: a one bit, zeros, and the length in bits as the last eight bytes of the last block.
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / blockBytes) * blockBytes);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const blocks = new DataView(padded.buffer);
  blocks.setUint32(padded.length - 8, Math.floor(bytes.length / 2 ** 29));
  blocks.setUint32(padded.length - 4, bytes.length * 8);
  for (let at = 0; at < padded.length; at += blockBytes) state = compress(state, words, blocks, at);
  const digest = new DataView(new ArrayBuffer(32));
  state.forEach((word, i) => {
    digest.setUint32(4 * i, word);
  });
  return new Uint8Array(digest.buffer);
}

/** The constants are fractional parts of roots of primes: square roots for the initial state, cube roots for the rounds. */
const primes = firstPrimes(64);
const initial = Uint32Array.from(primes.slice(0, 8), (prime) => fraction(prime ** (1 / 2)));
const rounds = Uint32Array.from(primes, (prime) => fraction(prime ** (1 / 3)));

function firstPrimes(count: number): number[] {
  const found: number[] = [];
  for (let n = 2; found.length < count; n++) if (found.every((prime) => n % prime !== 0)) found.push(n);
  return found;
}

function fraction(root: number): number {
  return Math.floor((root - Math.floor(root)) * 2 ** 32);
}

function compress(state: Uint32Array, words: Uint32Array, block: DataView, at: number): Uint32Array {
  for (let i = 0; i < 16; i++) words[i] = block.getUint32(at + 4 * i);
  for (let i = 16; i < 64; i++) {
    const early = words[i - 15] as number;
    const late = words[i - 2] as number;
    const s0 = rotate(early, 7) ^ rotate(early, 18) ^ (early >>> 3);
    const s1 = rotate(late, 17) ^ rotate(late, 19) ^ (late >>> 10);
    words[i] = (words[i - 16] as number) + s0 + (words[i - 7] as number) + s1;
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
  for (let i = 0; i < 64; i++) {
    const choice = (e & f) ^ (~e & g);
    const t1 = (h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + choice + (rounds[i] as number) + (words[i] as number)) | 0;
    const majority = (a & b) ^ (a & c) ^ (b & c);
    const t2 = ((rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + majority) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  return Uint32Array.from([a, b, c, d, e, f, g, h], (word, i) => (state[i] as number) + word);
}

function rotate(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits));
}
