/** Globals of every runtime. Declared here, because core is compiled without the types of any runtime. */
declare const performance: { now(): number };
declare const setTimeout: (run: () => void, ms?: number) => unknown;
declare const clearTimeout: (timer: unknown) => void;
declare const TextEncoder: new () => { encode(text: string): Uint8Array };

interface Tick {
  (run: () => void): void;
  /** Fake timers have it. */
  readonly clock?: unknown;
}

interface Globals {
  /** In Node, Bun and Deno; not in all Workers. */
  readonly setImmediate?: (run: () => void) => unknown;
  /** In Node, Bun and Deno. */
  readonly process?: { getBuiltinModule?(name: string): unknown; readonly nextTick?: Tick };
}

/** The real ones, even if a test replaces them later. The edge runtime of Next.js has functions that throw in their place. */
const { process: running, setImmediate: immediately }: Globals = "EdgeRuntime" in globalThis ? {} : (globalThis as Globals);

/** Cloudflare Workers and Vercel's edge, by what only they have: a request's timers and I/O end with it, also if other requests wait for them. */
export const workEndsWithRequest: boolean = "EdgeRuntime" in globalThis || "WebSocketPair" in globalThis;

/** Runs a callback as a microtask. Jest's fake timers replace `queueMicrotask`, but not promises. */
export async function soon(run: () => void): Promise<void> {
  await null;
  run();
}

/** Runs a callback after the current turn, before timers and I/O, even if a test fakes what does it, also before this module was loaded. */
export const afterTurn: (run: () => void) => void = /* @__PURE__ */ ((tick = running?.nextTick) => (tick && !tick.clock ? tick : soon))();

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

/** Encodes a text as UTF-8. Lone surrogates become U+FFFD. Not when it is loaded: jsdom in Jest has no encoder. */
export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** The part of `node:crypto` that core uses. */
export interface NodeCrypto {
  /** Not in every version of Bun and Deno. */
  readonly hash?: (algorithm: string, data: string | Uint8Array, encoding: "hex") => string;
  createHash(algorithm: string): NodeHash;
  createHmac(algorithm: string, key: string | Uint8Array): NodeHash;
}

export interface NodeHash {
  update(data: string | Uint8Array): NodeHash;
  digest(encoding: "hex"): string;
}

/** `node:crypto`, in Node, Bun and Deno, and in Workers with Node compatibility; undefined elsewhere. */
export function nodeCrypto(): NodeCrypto | undefined {
  return running?.getBuiltinModule?.("node:crypto") as NodeCrypto | undefined;
}

interface AsyncHooks {
  readonly AsyncResource: new (type: string) => { runInAsyncScope<A, R>(run: (argument: A) => R, self: undefined, argument: A): R };
}

const asyncHooks = running?.getBuiltinModule?.("node:async_hooks") as AsyncHooks | undefined;

/** A function that runs in the async context of this call, where the runtime has one: what an app keeps in an `AsyncLocalStorage` is there. */
export function inThisContext<A, R>(run: (argument: A) => R): (argument: A) => R {
  // `AsyncLocalStorage.bind` takes a hundred times as long.
  const here = asyncHooks && new asyncHooks.AsyncResource("Floodgate");
  return here === undefined ? run : (argument) => here.runInAsyncScope(run, undefined, argument);
}

/** Runs a callback after data that has arrived was read. A late timer would fire before that. */
export function afterReading(run: () => void): void {
  (immediately ?? setTimeout)(run);
}
