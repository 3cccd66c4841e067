import { type Afterwards, clientClosedRequest, whenEnded } from "@floodgate/core/adapter";
import type { Context } from "hono";
import { outgoingOf } from "./connection.js";

/** Calls back when the client has hung up; it may also be called when the response has been sent. */
export function whenGone(c: Context, gone: () => void): void {
  const outgoing = outgoingOf(c);
  if (outgoing !== undefined) {
    whenEnded(outgoing, gone);
    return;
  }
  whenAborted(c.req.raw.signal, gone);
}

const aborts = new WeakMap<AbortSignal, (() => void)[]>();

/** A signal has one listener, however many limits a request meets: Node warns of more than ten. */
function whenAborted(signal: AbortSignal, gone: () => void): void {
  const waiting = aborts.get(signal);
  if (signal.aborted) gone();
  else if (waiting !== undefined) waiting.push(gone);
  else {
    const all = [gone];
    aborts.set(signal, all);
    const aborted = (): void => {
      for (const one of all) one();
    };
    signal.addEventListener("abort", aborted, { once: true });
  }
}

/**
 * Tells the status of a response once it has been sent, or 499 where the client has gone away before: on Node when its own response
 * closes, elsewhere when the body has been read to its end or the request's signal is aborted.
 */
export function whenAnswered<T>(c: Context, answered: Promise<T>, tell: Afterwards): Promise<T> {
  const outgoing = outgoingOf(c);
  if (outgoing === undefined) {
    return answered.finally(() => keepAlive(c, new Promise((resolve) => whenRead(c, (status) => resolve(tell(status))))));
  }
  whenEnded(outgoing, tell);
  return answered;
}

/** Where a runtime ends what nobody waits for, has it wait. */
function keepAlive(c: Context, work: Promise<unknown>): void {
  let context: Pick<Context["executionCtx"], "waitUntil">;
  try {
    context = c.executionCtx;
  } catch {
    // There is none elsewhere, which Hono says by an error.
    return;
  }
  context.waitUntil(work);
}

function whenRead(c: Context, tell: (status: number) => void): void {
  const gone = (): void => tell(clientClosedRequest);
  if (c.req.raw.signal.aborted) gone();
  else if (!c.finalized) tell(500);
  else {
    const { body, status } = c.res;
    // Nobody reads the body of an answer to HEAD, and whoever reads one already does not say when it ends.
    if (body === null || body.locked || c.req.method === "HEAD") tell(status);
    else {
      // One piece ahead, so that a body of no more ends even if a middleware further out answers another and leaves it unread.
      const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>({}, undefined, { highWaterMark: 1 });
      let told = false;
      const tellOnce = (seen: number): void => {
        if (told) return;
        told = true;
        tell(seen);
      };
      const left = (): void => tellOnce(clientClosedRequest);
      // Some servers stop reading without a word. `pipeTo` has an option for this, but would wait until what it has is read.
      whenAborted(c.req.raw.signal, left);
      body.pipeTo(writable).then(() => tellOnce(status), left);
      c.res = new Response(readable, c.res);
    }
  }
}
