import { type Afterwards, outgoingOf, WebResponseEnd, whenEnded } from "@floodgate/core/adapter";
import type { Context } from "hono";

/**
 * Calls `sent` with the status of a response once it was sent, or with 499 if the client disconnected before. On Node that is when its
 * response closes; elsewhere when the body was read to its end or the request's signal is aborted.
 * @param answer lets the request pass.
 */
export function whenAnswered<T>(c: Context, answer: () => Promise<T>, sent: Afterwards): Promise<T> {
  const outgoing = outgoingOf(c.req.raw, c.env);
  if (outgoing !== undefined) {
    whenEnded(outgoing, sent);
    return answer();
  }
  let end: WebResponseEnd;
  const over = new Promise((resolve) => {
    end = new WebResponseEnd(c.req.raw, (status) => resolve(sent(status)));
  });
  keepAlive(c, over);
  return answer().finally(() => {
    // Without a response, the app's error handling will answer.
    const { res } = c.finalized ? c : { res: new Response(null, { status: 500 }) };
    const watched = end.watch(res);
    if (watched !== res) c.res = watched;
  });
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
