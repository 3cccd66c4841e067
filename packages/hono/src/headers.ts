import type { Header } from "@floodgate/core/adapter";
import type { Context } from "hono";
import { outgoingOf } from "./connection.js";

const append = { append: true };

/** Sets headers on the context, so that responses of `c.json()` and the like have them from the start. */
export function setHeaders(c: Context, headers: readonly Header[]): void {
  for (const { name, value, list } of headers) c.header(name, value, list ? append : undefined);
}

/**
 * Adds missing headers to a response. A response that Hono did not make has none of the prepared headers: a `new Response()`, a result of
 * `fetch()`, or a response of a mounted app. Headers that the response already has stay.
 */
export function addHeaders(c: Context, headers: readonly Header[]): void {
  let own: Headers | undefined;
  // Backwards, because the last list differs most: a response that has a limit's items there has all of the limit's headers.
  for (let i = headers.length - 1; i >= 0; i--) {
    const { name, value, list } = headers[i] as Header;
    const said = c.res.headers.get(name);
    if (said !== null) {
      if (!list) continue;
      if (holds(said, value)) return;
    }
    const both = said === null ? value : `${value}, ${said}`;
    if (own !== undefined) own.set(name, both);
    else if (isSealed(c)) return;
    else {
      // Hono copies the response first, because it may be immutable, or shared by several requests.
      c.header(name, both);
      own = c.res.headers;
    }
  }
}

/** Whether a list has these items. */
function holds(list: string, items: string): boolean {
  return list === items || `, ${list},`.includes(`, ${items},`);
}

/** Whether the headers cannot change: a protocol switch and a network error cannot be copied, and headers may be sent already. */
function isSealed(c: Context): boolean {
  return c.res.status < 200 || outgoingOf(c)?.headersSent === true;
}
