import { type Afterwards, outgoingOf, whenEnded, whenRead } from "@floodgate/core/adapter";
import type { Context } from "hono";

/**
 * Calls `sent` with the status of a response once it was sent, or with 499 if the client disconnected before. On Node that is when its
 * response closes; elsewhere when the body was read to its end or the request's signal is aborted.
 */
export function whenAnswered<T>(c: Context, answered: Promise<T>, sent: Afterwards): Promise<T> {
  const outgoing = outgoingOf(c.req.raw, c.env);
  if (outgoing === undefined)
    return answered.finally(() => keepAlive(c, new Promise((resolve) => whenOver(c, (status) => resolve(sent(status))))));
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

function whenOver(c: Context, ended: (status: number) => void): void {
  // Without a response, the app's error handling will answer.
  const { res } = c.finalized ? c : { res: new Response(null, { status: 500 }) };
  const watched = whenRead(c.req.raw, res, ended);
  if (watched !== res) c.res = watched;
}
