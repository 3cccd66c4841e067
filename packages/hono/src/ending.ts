import { type Afterwards, clientClosedRequest, whenEnded } from "@floodgate/core";
import type { Context } from "hono";
import { outgoingOf } from "./connection.js";

/** Calls back when the client has hung up; it may also be called when the response has been sent. */
export function whenGone(c: Context, gone: () => void): void {
  const outgoing = outgoingOf(c);
  if (outgoing !== undefined) {
    whenEnded(outgoing, gone);
    return;
  }
  const { signal } = c.req.raw;
  if (signal.aborted) gone();
  else signal.addEventListener("abort", gone, { once: true });
}

/**
 * Tells the status of a response once it has been sent, or 499 where the client has gone away before: on Node when its own response
 * closes, elsewhere when the body has been read to its end.
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
      body.pipeTo(writable, { signal: c.req.raw.signal }).then(() => tell(status), gone);
      c.res = new Response(readable, c.res);
    }
  }
}
