import { Problem } from "./problems.js";
import type { TokenFile } from "./tokens.js";

/**
 * Refuses requests that a browser sends for a web page: any page could otherwise post to this machine.
 * @param isOpen whether no token is needed. Then the host must be a name of this machine, because a page's own name may lead here too.
 * @throws Problem 403
 */
export function refuseBrowsers({ headers }: Request, isOpen: boolean): void {
  // Not `sec-fetch-mode`, which the `fetch` of Node sends too.
  const sign = ["origin", "sec-fetch-site"].find((name) => headers.has(name));
  if (sign !== undefined) {
    throw new Problem(403, "browser", `The API is for programs, not for web pages, but the request has the header ${sign}.`);
  }
  const host = headers.get("host") ?? "";
  if (isOpen && !/^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i.test(host)) {
    throw new Problem(
      403,
      "foreign-host",
      `Without a token, the API answers at localhost, 127.0.0.1 and [::1] only. Set apiTokenFile to use other names.`,
    );
  }
}

/** @throws Problem 401 */
export function checkToken({ headers }: Request, tokens: TokenFile): void {
  const given = headers.get("authorization") ?? "";
  const [, token] = /^bearer +(\S{1,4096})$/i.exec(given) ?? [];
  if (token !== undefined && tokens.has(token)) return;
  const reason = given === "" ? "The request has no token" : "The token is wrong";
  throw new Problem(401, "unauthorized", `${reason}. Write Authorization: Bearer <token>, with a line of the file of apiTokenFile.`, {
    headers: { "WWW-Authenticate": 'Bearer realm="floodgate"' },
  });
}
