import type { NodeResponse } from "@floodgate/core/adapter";
import type { Context } from "hono";

/** The used part of Node's HTTP/1 or HTTP/2 response. */
export interface Outgoing extends NodeResponse {
  readonly headersSent: boolean;
}

/** What runtimes and their adapters pass as `c.env`. Each sets a part of this. */
interface Runtime {
  /** Bun's server, or the environment of @hono/node-server, if the app passes it under this name. */
  readonly server?: Runtime;
  /** @hono/node-server. `outgoing` is missing if the connection is upgraded. */
  readonly incoming?: { readonly socket?: { readonly remoteAddress?: string } };
  readonly outgoing?: Outgoing;
  /** Bun. */
  readonly requestIP?: (request: Request) => { readonly address?: string } | null;
  /** Deno. */
  readonly remoteAddr?: { readonly hostname?: string };
  /** AWS Lambda behind an API Gateway of either version, or with a URL of its own. */
  readonly requestContext?: { readonly identity?: { readonly sourceIp?: string }; readonly http?: { readonly sourceIp?: string } };
  /** Lambda@Edge. */
  readonly event?: { readonly Records?: readonly { readonly cf?: { readonly request?: { readonly clientIp?: string } } }[] };
  /** Netlify. */
  readonly context?: { readonly ip?: string };
}

/** What workerd sets on a request. Clients cannot change it. */
interface Cloudflare {
  /** The data center. Only Cloudflare's edge sets it, on every request. */
  readonly colo?: string;
  /** The socket's address. Set if workerd runs without the edge. */
  readonly clientIp?: string;
}

const nothing: Runtime = {};

function runtimeOf(c: Context): Runtime {
  // `app.request()` may have no environment.
  const env = c.env as Runtime | null | undefined;
  return env?.server ?? env ?? nothing;
}

function cloudflareOf(c: Context): Cloudflare | null | undefined {
  return (c.req.raw as { readonly cf?: Cloudflare | null }).cf;
}

/** Node's response, if @hono/node-server passes it. */
export function outgoingOf(c: Context): Outgoing | undefined {
  // On Workers, `c.env` holds the app's bindings, which may have any name.
  if (cloudflareOf(c)) return undefined;
  const { incoming, outgoing } = runtimeOf(c);
  return incoming && outgoing;
}

/** The address at the other end of the socket, if the runtime passes it: the client's, or the last proxy's. */
export function socketAddress(c: Context): string | undefined {
  const cloudflare = cloudflareOf(c);
  if (cloudflare) return cloudflare.clientIp;
  const runtime = runtimeOf(c);
  if (runtime.incoming !== undefined) return runtime.incoming.socket?.remoteAddress;
  if (runtime.requestIP !== undefined) return runtime.requestIP(c.req.raw)?.address;
  return runtime.remoteAddr?.hostname;
}

/**
 * The client's address, if the platform's edge passes it where clients cannot forge it. Vercel and AWS load balancers only pass it in
 * headers, which clients could set too.
 */
export function edgeAddress(c: Context): string | undefined {
  const cloudflare = cloudflareOf(c);
  // With `colo` the request came through the edge, which overwrites this header. Without it, anyone may send the header.
  if (cloudflare) return cloudflare.colo === undefined ? undefined : c.req.header("cf-connecting-ip");
  const { requestContext, event, context } = runtimeOf(c);
  return requestContext?.identity?.sourceIp ?? requestContext?.http?.sourceIp ?? event?.Records?.[0]?.cf?.request?.clientIp ?? context?.ip;
}
