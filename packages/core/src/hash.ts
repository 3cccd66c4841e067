/**
 * SHA-256 (FIPS 180-4) of a text's UTF-16 code units, big-endian, as 64 hexadecimal digits. Core has no Node built-in and
 * must answer at once, so it brings its own; code units rather than UTF-8, which would make all lone surrogates one.
 */
export function sha256(text: string): string {
  const state = Uint32Array.from(initial);
  const words = new Uint32Array(64);
  // After the text come a one bit, zeros, and the length in bits, which ends the last block of sixteen words.
  const blocks = Math.ceil((text.length * 2 + 9) / 64);
  for (let block = 0; block < blocks; block++) {
    for (let i = 0; i < 16; i++) {
      const at = (block * 16 + i) * 2;
      words[i] = (unit(text, at) << 16) | unit(text, at + 1);
    }
    if (block === blocks - 1) {
      words[14] = Math.floor((text.length * 16) / 2 ** 32);
      words[15] = text.length * 16;
    }
    compress(state, words);
  }
  return Array.from(state, (word) => word.toString(16).padStart(8, "0")).join("");
}

function unit(text: string, at: number): number {
  if (at < text.length) return text.charCodeAt(at);
  return at === text.length ? 0x8000 : 0;
}

/** The fractional parts of the roots of the first primes: square roots to start from, cube roots for the rounds. */
const primes = firstPrimes(64);
const initial = primes.slice(0, 8).map((prime) => fraction(prime ** (1 / 2)));
const rounds = Uint32Array.from(primes, (prime) => fraction(prime ** (1 / 3)));

function firstPrimes(count: number): number[] {
  const found: number[] = [];
  for (let n = 2; found.length < count; n++) if (found.every((prime) => n % prime !== 0)) found.push(n);
  return found;
}

function fraction(root: number): number {
  return Math.floor((root - Math.floor(root)) * 2 ** 32);
}

function compress(state: Uint32Array, words: Uint32Array): void {
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
  [a, b, c, d, e, f, g, h].forEach((word, i) => {
    state[i] = (state[i] as number) + word;
  });
}

function rotate(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits));
}
