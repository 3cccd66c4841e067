import { warnOnce, yesOrNo } from "@floodgate/core/adapter";
import type { View } from "../routes/view.js";

/**
 * Makes a function that says whether a request may see the dashboard: whom `authorize` lets in, else only browsers on this machine, and nobody
 * in production. What `authorize` throws goes to the app's error handling.
 * @param example how the app writes the option: "(req) => req.user?.admin === true".
 * @param advice what the warning of a closed dashboard says to write.
 * @returns a function that throws FloodgateError `FLOODGATE_INVALID_ANSWER` if `authorize` answers neither true nor false.
 */
export function gateOf<Req>(
  authorize: ((request: Req) => unknown) | undefined,
  example: string,
  advice = `Without \`authorize\` it answers browsers on this machine only, and nobody in production. Write dashboard({ authorize: ${example} }).`,
): (view: View, request: Req) => Promise<boolean> {
  return async (view, request) => {
    if (authorize !== undefined) return yesOrNo("dashboard", "authorize", await authorize(request), example);
    const why = whyProduction() ?? whyNotLocal(view);
    if (why !== undefined) warnOnce("FLOODGATE_DASHBOARD_CLOSED", `the dashboard has not answered a request, because ${why}. ${advice}`);
    return why === undefined;
  };
}

/** Headers that proxies, load balancers and content delivery networks add. */
const forwarding =
  /^(?:x-forwarded(?:-|$)|x-original-|x-real-ip$|x-(?:cluster-)?client-ip$|x-envoy-|x-amzn-|x-appengine-|x-azure-|x-vercel-|x-nf-|x-varnish$|cf-|fly-|fastly-|(?:true-)?client-ip$|forwarded(?:-|$)|via$|cdn-loop$|proxy-connection$)/;

const loopbackName = String.raw`(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$`;
const loopbackHost = new RegExp(`^${loopbackName}`, "i");
const loopbackOrigin = new RegExp(`^https?://${loopbackName}`, "i");
const loopbackAddress = /^(?:::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$|^::1$/i;

/**
 * Why a request may come from another machine; undefined if it comes from a browser on this one. A page of another site can make the
 * browser send requests here under a name of its own (DNS rebinding), so the Host is checked too. nginx with a bare `proxy_pass` adds no
 * header. Its Host is the app's address.
 */
export function whyNotLocal(view: View): string | undefined {
  const { remoteAddress } = view;
  if (remoteAddress === undefined || !loopbackAddress.test(remoteAddress)) return "it does not come from this machine";
  for (const name of view.headerNames()) if (forwarding.test(name)) return `a proxy has forwarded it (${name})`;
  const connection = whyNotBrowser(view);
  if (connection !== undefined) return connection;
  // HTTP/2 has `:authority`, and may have Host too.
  const hosts = [view.header("host"), view.header(":authority")].filter((host) => host !== undefined);
  if (hosts.length === 0 || !hosts.every((host) => loopbackHost.test(host))) return "its Host is not localhost, 127.0.0.1 or [::1]";
  const origin = view.header("origin");
  if (origin !== undefined && !loopbackOrigin.test(origin)) return "it comes from a page of another site";
  return undefined;
}

/**
 * Why a connection is not a browser's. Browsers send `Connection: keep-alive` with each HTTP/1.1 request. The header is about one connection
 * only, so proxies drop the client's and write their own: nginx speaks HTTP/1.0 or writes `close`, and since 1.30 it writes none. HTTP/2 has
 * no such header, and browsers speak it over TLS only.
 */
function whyNotBrowser({ httpVersion, header, tls }: View): string | undefined {
  if (httpVersion !== undefined && !/^(?:1\.1|2(?:\.0)?)$/.test(httpVersion)) return `it speaks HTTP/${httpVersion}, as proxies do`;
  const connection = header("connection");
  if (connection === undefined && tls && httpVersion !== "1.1") return undefined;
  if (httpVersion?.startsWith("2")) return "it speaks HTTP/2 without TLS, as proxies do";
  return /\bkeep-alive\b/i.test(connection ?? "") ? undefined : "it has no `Connection: keep-alive`, which browsers send and proxies drop";
}

/** Why the app may run in production; undefined if it does not. */
function whyProduction(): string | undefined {
  try {
    return process.env["NODE_ENV"] === "production" ? "NODE_ENV is production" : undefined;
  } catch {
    // Deno without --allow-env=NODE_ENV.
    return "NODE_ENV cannot be read";
  }
}
