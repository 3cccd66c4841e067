import { type Afterwards, clientClosedRequest, whenEnded } from "@floodgate/core/adapter";
import type { Context } from "hono";
import { outgoingOf } from "./connection.js";

/** Calls `gone` when the client disconnects. It may also be called when the response was sent. */
export function whenGone(c: Context, gone: () => void): void {
  const outgoing = outgoingOf(c);
  if (outgoing !== undefined) {
    whenEnded(outgoing, gone);
    return;
  }
  whenAborted(c.req.raw.signal, gone);
}

const aborts = new WeakMap<AbortSignal, (() => void)[]>();

/** Adds one listener per signal, because Node warns of more than ten. */
function whenAborted(signal: AbortSignal, gone: () => void): void {
  const waiting = aborts.get(signal);
  if (signal.aborted) gone();
  else if (waiting !== undefined) waiting.push(gone);
  else {
    const all = [gone];
    aborts.set(signal, all);
    const aborted = (): void => {
      for (const callback of all) callback();
    };
    signal.addEventListener("abort", aborted, { once: true });
  }
}

/**
 * Calls `sent` with the status of a response once it was sent, or with 499 if the client disconnected before. On Node that is when its
 * response closes; elsewhere when the body was read to its end or the request's signal is aborted.
 */
export function whenAnswered<T>(c: Context, answered: Promise<T>, sent: Afterwards): Promise<T> {
  const outgoing = outgoingOf(c);
  if (outgoing === undefined) {
    return answered.finally(() => keepAlive(c, new Promise((resolve) => whenRead(c, (status) => resolve(sent(status))))));
  }
  whenEnded(outgoing, sent);
  return answered;
}

/** Makes the runtime wait for work, if it kills unawaited work. */
function keepAlive(c: Context, work: Promise<unknown>): void {
  let context: Pick<Context["executionCtx"], "waitUntil">;
  try {
    context = c.executionCtx;
  } catch {
    // Other runtimes have none, and Hono throws.
    return;
  }
  context.waitUntil(work);
}

function whenRead(c: Context, ended: (status: number) => void): void {
  const gone = (): void => ended(clientClosedRequest);
  if (c.req.raw.signal.aborted) gone();
  else if (!c.finalized) ended(500);
  else {
    const { body, status } = c.res;
    // Nobody reads the body of a HEAD response. If somebody reads the body already, we cannot see its end.
    if (body === null || body.locked || c.req.method === "HEAD") ended(status);
    else {
      // Reads one chunk ahead, so that a body of one chunk ends even if an outer middleware replaces the response and never reads it.
      const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>({}, undefined, { highWaterMark: 1 });
      let hasEnded = false;
      const endOnce = (status: number): void => {
        if (hasEnded) return;
        hasEnded = true;
        ended(status);
      };
      const left = (): void => endOnce(clientClosedRequest);
      // Some servers stop reading silently. `pipeTo` has an option for this, but it waits until the chunks that it holds are read.
      whenAborted(c.req.raw.signal, left);
      body.pipeTo(writable).then(() => endOnce(status), left);
      c.res = new Response(readable, c.res);
    }
  }
}
