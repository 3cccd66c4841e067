import { createHash, timingSafeEqual } from "node:crypto";
import type { MiddlewareHandler } from "hono";

/** Asks for a password in the browser. The user name may be anything; `Authorization: Bearer` works too. */
export function requireToken(token: string): MiddlewareHandler {
  return async (c, next) => {
    if (hasToken(c.req.header("authorization"), token)) return next();
    return c.text("The password is in the file of the setting `adminTokenFile`.\n", 401, {
      "WWW-Authenticate": 'Basic realm="Floodgate", charset="UTF-8"',
      "Cache-Control": "no-store",
    });
  };
}

/** Whether a header holds a token, as the password of basic authentication or as a bearer token. */
export function hasToken(authorization: string | undefined, token: string): boolean {
  const [, scheme = "", credentials = ""] = /^(basic|bearer) +(\S+)$/i.exec(authorization ?? "") ?? [];
  if (scheme.toLowerCase() === "bearer") return isEqual(credentials, token);
  const pair = Buffer.from(credentials, "base64").toString();
  const colon = pair.indexOf(":");
  return colon >= 0 && isEqual(pair.slice(colon + 1), token);
}

/** Compares in a time that says nothing about the secret. */
function isEqual(given: string, secret: string): boolean {
  return timingSafeEqual(digest(given), digest(secret));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
