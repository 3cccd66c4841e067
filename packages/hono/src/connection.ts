import type { NodeResponse } from "@floodgate/core/adapter";
import type { Context } from "hono";

/** What is used of Node's own response, that of HTTP/1 or HTTP/2. */
export interface Outgoing extends NodeResponse {
  readonly headersSent: boolean;
}

/** What runtimes and their adapters hand over as `c.env`, each a part of this. */
interface Runtime {
  /** Bun's server, or what @hono/node-server hands over, where the app passes it on under this name. */
  readonly server?: Runtime;
  /** @hono/node-server. There is no `outgoing` where a connection is upgraded. */
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

/** What workerd puts on a request, of its own knowledge: no header that a client sends becomes a part of it. */
interface Cloudflare {
  /** The data center: set by Cloudflare's edge on every request, and by nobody else. */
  readonly colo?: string;
  /** The socket's address and port: set where workerd runs by itself. */
  readonly clientIp?: string;
}

const nothing: Runtime = {};

function runtimeOf(c: Context): Runtime {
  // `app.request()` without an environment has none at all.
  const env = c.env as Runtime | null | undefined;
  return env?.server ?? env ?? nothing;
}

function cloudflareOf(c: Context): Cloudflare | null | undefined {
  return (c.req.raw as { readonly cf?: Cloudflare | null }).cf;
}

/** Node's response, where @hono/node-server has handed it over. */
export function outgoingOf(c: Context): Outgoing | undefined {
  // On Workers `c.env` holds bindings of the app's choice, which answer to any name.
  if (cloudflareOf(c)) return undefined;
  const { incoming, outgoing } = runtimeOf(c);
  return incoming && outgoing;
}

/** The address at the other end of the socket, where the runtime hands over that: the client's, or that of the last proxy. */
export function socketAddress(c: Context): string | undefined {
  const cloudflare = cloudflareOf(c);
  if (cloudflare) return cloudflare.clientIp;
  const runtime = runtimeOf(c);
  if (runtime.incoming !== undefined) return runtime.incoming.socket?.remoteAddress;
  if (runtime.requestIP !== undefined) return runtime.requestIP(c.req.raw)?.address;
  return runtime.remoteAddr?.hostname;
}

/**
 * The client's address where a platform's edge stands before the app and hands it over, past anything that a client can write.
 * Vercel and load balancers of AWS do not: they tell it in headers alone, which nothing here can know to be theirs.
 */
export function edgeAddress(c: Context): string | undefined {
  const cloudflare = cloudflareOf(c);
  // The header is the edge's word, for the edge replaces what clients send under that name, and only it sets `colo`. Elsewhere, and
  // where workerd runs by itself, anyone may send the header.
  if (cloudflare) return cloudflare.colo === undefined ? undefined : c.req.header("cf-connecting-ip");
  const { requestContext, event, context } = runtimeOf(c);
  return requestContext?.identity?.sourceIp ?? requestContext?.http?.sourceIp ?? event?.Records?.[0]?.cf?.request?.clientIp ?? context?.ip;
}
