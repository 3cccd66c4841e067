import { clientClosedRequest } from "@floodgate/core";
import type { Context } from "hono";
import { nodeOf } from "./connection.js";

/** Calls back when the client has hung up; it may also be called when the response has been sent. */
export function whenGone(c: Context, gone: () => void): void {
  const outgoing = nodeOf(c)?.outgoing;
  if (outgoing !== undefined) {
    if (outgoing.closed) gone();
    else outgoing.once("close", gone);
    return;
  }
  const { signal } = c.req.raw;
  if (signal.aborted) gone();
  else signal.addEventListener("abort", gone, { once: true });
}

/**
 * Tells the status of a response: on Node once it has been sent; elsewhere, where nothing tells when that is, once it is made. It is
 * 499 where the client has gone away before.
 */
export function whenAnswered<T>(c: Context, answered: Promise<T>, tell: (status: number) => void): Promise<T> {
  const outgoing = nodeOf(c)?.outgoing;
  if (outgoing === undefined)
    return answered.finally(() => tell(c.req.raw.signal.aborted ? clientClosedRequest : c.finalized ? c.res.status : 500));
  const closed = (): void => tell(outgoing.writableFinished ? outgoing.statusCode : clientClosedRequest);
  if (outgoing.closed) closed();
  else outgoing.once("close", closed);
  return answered;
}
