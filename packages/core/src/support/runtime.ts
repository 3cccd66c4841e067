/** What every runtime has beside the language; typed here because core has no types of any of them. */
declare const performance: { now(): number };
declare const setTimeout: (run: () => void, ms: number) => unknown;
declare const clearTimeout: (timer: unknown) => void;
/** Node, Bun and Deno have it; Workers need not. */
declare const setImmediate: ((run: () => void) => unknown) | undefined;

/** The runtime's own, whatever clock a test may put in place of it later. */
const immediately = typeof setImmediate === "function" ? setImmediate : undefined;
/** In Node, Bun and Deno. */
declare const process: { getBuiltinModule?(name: "node:crypto"): NodeCrypto | undefined } | undefined;

declare const queueMicrotask: (run: () => void) => void;

/** Runs something once what runs now is through. */
export function afterThisRun(run: () => void): void {
  queueMicrotask(run);
}

/** A clock that never steps, in milliseconds from some moment of this process. */
export function steadyMs(): number {
  return performance.now();
}

/** Runs something in `ms` milliseconds (up to 2^31). The timer keeps no process alive. */
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

/** Runs something once the data that has arrived meanwhile has been read: a timer that is late fires before that. */
export function afterReading(run: () => void): void {
  if (immediately === undefined) setTimeout(run, 0);
  else immediately(run);
}
