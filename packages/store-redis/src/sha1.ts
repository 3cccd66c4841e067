import { nodeCrypto } from "@floodgate/core/store";

const crypto = nodeCrypto();

/** SHA-1 of a text as UTF-8, in 40 hexadecimal digits: the name of a script in Redis. */
export const sha1: (text: string) => string =
  crypto === undefined ? ownSha1 : (text) => crypto.createHash("sha1").update(text).digest("hex");

const constants = [0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6];

/** FIPS 180-4, for runtimes without `node:crypto`. Web Crypto cannot be used, because it is asynchronous. */
export function ownSha1(text: string): string {
  const bytes = new TextEncoder().encode(text);
  // Padding: a one bit, zeros, and the length in bits at the end of the last block.
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const blocks = new DataView(padded.buffer);
  blocks.setUint32(padded.length - 4, bytes.length * 8);
  let state = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0];
  const words = new Int32Array(80);
  for (let at = 0; at < padded.length; at += 64) {
    let [a, b, c, d, e] = state as [number, number, number, number, number];
    for (let i = 0; i < 80; i++) {
      const earlier = (back: number): number => words[i - back] as number;
      words[i] = i < 16 ? blocks.getInt32(at + 4 * i) : rotate(earlier(3) ^ earlier(8) ^ earlier(14) ^ earlier(16), 1);
      const mixed = i < 20 ? (b & c) | (~b & d) : i < 40 || i >= 60 ? b ^ c ^ d : (b & c) | (b & d) | (c & d);
      const next = (rotate(a, 5) + mixed + e + (constants[Math.floor(i / 20)] as number) + (words[i] as number)) | 0;
      [a, b, c, d, e] = [next, a, rotate(b, 30), c, d];
    }
    state = [a, b, c, d, e].map((word, i) => (word + (state[i] as number)) | 0);
  }
  return state.map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

function rotate(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}
