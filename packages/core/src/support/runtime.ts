/** Globals of every runtime. Declared here, because core is compiled without the types of any runtime. */
declare const performance: { now(): number };
declare const setTimeout: (run: () => void, ms: number) => unknown;
declare const clearTimeout: (timer: unknown) => void;
/** In Node, Bun and Deno; not in all Workers. */
declare const setImmediate: ((run: () => void) => unknown) | undefined;

/** The real one, even if a test replaces it later. */
const immediately = typeof setImmediate === "function" ? setImmediate : undefined;
/** In Node, Bun and Deno. */
declare const process: { getBuiltinModule?(name: "node:crypto"): NodeCrypto | undefined } | undefined;

/** Cloudflare Workers: a request's timers and I/O end with it, also if other requests wait for them. */
export const workEndsWithRequest: boolean =
  (globalThis as { navigator?: { userAgent?: string } }).navigator?.userAgent === "Cloudflare-Workers";

/** A monotonic clock in milliseconds, from an arbitrary start. */
export function steadyMs(): number {
  return performance.now();
}

/** Runs a callback in `ms` milliseconds (less than 2^31). The timer does not keep the process alive. */
export function startTimer(run: () => void, ms: number): unknown {
  const timer = setTimeout(run, ms);
  (timer as { unref?: () => void }).unref?.();
  return timer;
}

export function stopTimer(timer: unknown): void {
  clearTimeout(timer);
}

/** The part of `node:crypto` that core uses. */
export interface NodeCrypto {
  /** Not in every version of Bun and Deno. */
  readonly hash?: (algorithm: string, data: string | Uint8Array, encoding: "hex") => string;
  createHash(algorithm: string): NodeHash;
  createHmac(algorithm: string, key: string | Uint8Array): NodeHash;
}

interface NodeHash {
  update(data: string | Uint8Array): NodeHash;
  digest(encoding: "hex"): string;
}

/** `node:crypto`, in Node, Bun and Deno, and in Workers with Node compatibility. */
export function nodeCrypto(): NodeCrypto | undefined {
  return typeof process === "undefined" ? undefined : process.getBuiltinModule?.("node:crypto");
}

/** Runs a callback after data that has arrived was read. A late timer would fire before that. */
export function afterReading(run: () => void): void {
  if (immediately === undefined) setTimeout(run, 0);
  else immediately(run);
}
