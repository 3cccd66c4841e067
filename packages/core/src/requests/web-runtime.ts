import type { NodeResponse, NodeSocket } from "../responses/response-end.js";
import { lostAddress, type NodeConnection, nodeHasLeft } from "./request-reader.js";

/** The used part of a `Request` of the Fetch API. Typed by structure, because core is compiled without the types of any runtime. */
export interface WebRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: { get(name: string): string | null };
  /** Missing in Azure Functions. */
  readonly signal?: WebSignal | undefined;
}

export interface WebSignal {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
}

/** Node's response, if the server passes it. */
export interface Outgoing extends NodeResponse {
  readonly headersSent: boolean;
}

interface Incoming {
  /** A test may pass an address alone. */
  readonly socket?: NodeConnection & Partial<NodeSocket>;
}

/** What runtimes and their adapters pass beside a request. Each sets a part of this. */
interface Runtime {
  /** Bun's server, or the environment of @hono/node-server, if the app passes it under this name. */
  readonly server?: Runtime;
  /** @hono/node-server. `outgoing` is missing if the connection is upgraded. */
  readonly incoming?: Incoming | undefined;
  readonly outgoing?: Outgoing | undefined;
  /** Bun, unless it listens on a Unix socket. */
  readonly port?: number;
  /** Bun. */
  readonly requestIP?: (request: never) => { readonly address?: string } | null;
  /** Deno. */
  readonly remoteAddr?: { readonly hostname?: string };
  /** AWS Lambda behind an API Gateway of either version, or with a URL of its own. */
  readonly requestContext?: { readonly identity?: { readonly sourceIp?: string }; readonly http?: { readonly sourceIp?: string } };
  /** Lambda@Edge. */
  readonly event?: { readonly Records?: readonly { readonly cf?: { readonly request?: { readonly clientIp?: string } } }[] };
  /** Netlify. */
  readonly context?: { readonly ip?: string };
}

/** What srvx, the server of Nitro and h3, sets on a request. Its `request.ip` may be a forwarded address that anyone can forge. */
interface Srvx {
  readonly node?: { readonly req?: Incoming; readonly res?: Outgoing };
  readonly bun?: { readonly server?: Runtime };
  readonly deno?: { readonly info?: Runtime };
}

/** What workerd sets on a request. Clients cannot change it. */
interface Cloudflare {
  /** The data center. Only Cloudflare's edge sets it, on every request. */
  readonly colo?: string;
  /** The socket's address. Set if workerd runs without the edge. */
  readonly clientIp?: string;
}

/** A global of every runtime. */
declare const URL: new (url: string) => { readonly host: string };

/** The value of a header. A client of HTTP/2 sends no `Host`: it stands in the URL only. */
export function webHeader({ headers, url }: Pick<WebRequest, "headers" | "url">, lowerCaseName: string): string | undefined {
  return headers.get(lowerCaseName) ?? (lowerCaseName === "host" ? new URL(url).host : undefined);
}

const nothing: Runtime = {};

function runtimeOf(request: WebRequest, passed: unknown): Runtime {
  // On Workers, what is passed are the app's bindings, which may have any name.
  if (cloudflareOf(request)) return nothing;
  const srvx = (request as { readonly runtime?: Srvx | null }).runtime;
  if (srvx) return srvx.node ? { incoming: srvx.node.req, outgoing: srvx.node.res } : (srvx.bun?.server ?? srvx.deno?.info ?? nothing);
  // Requests in tests may have none.
  const env = passed as Runtime | null | undefined;
  return env?.server ?? env ?? nothing;
}

function cloudflareOf(request: WebRequest): Cloudflare | null | undefined {
  return (request as { readonly cf?: Cloudflare | null }).cf;
}

/** Node's response, if a server of Node passes it: on the request (srvx) or beside it (`passed`, of @hono/node-server). */
export function outgoingOf(request: WebRequest, passed: unknown): Outgoing | undefined {
  const { incoming, outgoing } = runtimeOf(request, passed);
  return incoming && outgoing;
}

/**
 * Whether it is certain that the client of a request has disconnected. Of a connection that was reset, Deno tells the address 0.0.0.0.
 * @param passed what the runtime passes beside the request.
 */
export function hasLeft(request: WebRequest, passed: unknown): boolean {
  const { incoming, remoteAddr } = runtimeOf(request, passed);
  return incoming ? nodeHasLeft(incoming) : request.signal?.aborted || remoteAddr?.hostname === "0.0.0.0";
}

/** The socket of a request that may become a WebSocket, if a server of Node passes it: such a request has no `outgoing`. */
export function upgradedSocketOf(request: WebRequest, passed: unknown): NodeSocket | undefined {
  const { incoming, outgoing } = runtimeOf(request, passed);
  return !outgoing && incoming?.socket?.once ? (incoming.socket as NodeSocket) : undefined;
}

/**
 * The address at the other end of the socket, if the runtime reports it: the client's, or the last proxy's. `lostAddress` if the
 * connection was reset, and on Bun also if the app has made the `Request` from another one.
 * @param passed what the runtime passes beside the request: Bun's server, Deno's information, an environment.
 */
export function socketAddress(request: WebRequest, passed: unknown): string | undefined {
  const cloudflare = cloudflareOf(request);
  if (cloudflare) return cloudflare.clientIp;
  const runtime = runtimeOf(request, passed);
  if (runtime.incoming) return runtime.incoming.socket?.remoteAddress;
  if (typeof runtime.requestIP === "function")
    return runtime.requestIP(request as never)?.address ?? (runtime.port ? lostAddress : undefined);
  const hostname = runtime.remoteAddr?.hostname;
  return hostname === "0.0.0.0" ? lostAddress : hostname;
}

/**
 * The client's address, if the platform's edge passes it where clients cannot forge it. Vercel and AWS load balancers only pass it in
 * headers, which clients could set too.
 */
export function edgeAddress(request: WebRequest, passed: unknown): string | undefined {
  const cloudflare = cloudflareOf(request);
  // With `colo` the request came through the edge, which overwrites this header. Without it, anyone may send the header.
  if (cloudflare) return (cloudflare.colo && request.headers.get("cf-connecting-ip")) || undefined;
  const { requestContext, event, context } = runtimeOf(request, passed);
  return requestContext?.identity?.sourceIp ?? requestContext?.http?.sourceIp ?? event?.Records?.[0]?.cf?.request?.clientIp ?? context?.ip;
}
