import type { Header } from "@floodgate/core/adapter";
import type { Context } from "hono";
import { outgoingOf } from "./connection.js";

const append = { append: true };

/** Sets headers where Hono prepares them, so that what `c.json()` and the like make has them from the start. */
export function setHeaders(c: Context, headers: readonly Header[]): void {
  for (const { name, value, list } of headers) c.header(name, value, list ? append : undefined);
}

/**
 * Gives a response the headers that it lacks: one that Hono did not make has none of what was prepared, whether it is a
 * `new Response()`, what `fetch()` has answered, or that of a mounted app. What it says itself stands, as if it had been said later.
 */
export function addHeaders(c: Context, headers: readonly Header[]): void {
  let own: Headers | undefined;
  // From the end, where the list is that differs most: a response that has a limit's items there has all of its headers.
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
      // Hono copies the response first, for it may be immutable, or one that the app answers with time and again.
      c.header(name, both);
      own = c.res.headers;
    }
  }
}

/** Whether a list has these items. */
function holds(list: string, items: string): boolean {
  return list === items || `, ${list},`.includes(`, ${items},`);
}

/** A switch of protocols and a failure of the network cannot be copied, and what an app has sent through Node itself is gone. */
function isSealed(c: Context): boolean {
  return c.res.status < 200 || outgoingOf(c)?.headersSent === true;
}
