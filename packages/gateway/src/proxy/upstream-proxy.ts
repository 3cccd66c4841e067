import type { ClientRequest, IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ProxyServer } from "httpxy";
import type { Settings } from "../config/settings.js";
import { sampledLog, type WriteSampled } from "../log/sampled-log.js";
import type { Service } from "../service/service.js";
import { codeOf, InvalidAnswer, reasonOf } from "./answer.js";
import type { ClientMessage } from "./message.js";
import { type Upstream, upstreamOf } from "./upstream.js";

/** httpxy with the upstream of the settings. Its events go to the exchange or tunnel of their request. */
export class UpstreamProxy {
  readonly settings: Settings;
  readonly upstream: Upstream;
  readonly #service: Service;
  readonly #log: WriteSampled;
  readonly #proxy: ProxyServer<ClientMessage, ServerResponse>;

  private constructor(service: Service, upstream: Upstream, proxy: ProxyServer<ClientMessage, ServerResponse>) {
    this.settings = service.settings;
    this.upstream = upstream;
    this.#log = sampledLog(service.log);
    this.#service = service;
    this.#proxy = proxy;
    proxy.on("proxyReq", (upstreamRequest, request) => request.exchange?.onUpstreamRequest(upstreamRequest));
    proxy.on("proxyRes", (upstreamResponse, request) => request.exchange?.onUpstreamResponse(upstreamResponse));
    proxy.on("proxyReqWs", (upstreamRequest, request) => request.tunnel?.onUpstreamRequest(upstreamRequest));
    proxy.on("error", (error, request) => (request?.exchange ?? request?.tunnel)?.onError(error));
  }

  /** @throws FloodgateError if the upstream's settings are wrong. */
  static async start(service: Service): Promise<UpstreamProxy> {
    const upstream = upstreamOf(service.settings);
    // httpxy is an ES module, this package is CommonJS too.
    const { ProxyServer } = await import("httpxy");
    return new UpstreamProxy(service, upstream, new ProxyServer<ClientMessage, ServerResponse>());
  }

  get draining(): boolean {
    return this.#service.draining;
  }

  /** @param fresh whether to use a connection of its own. */
  web(request: ClientMessage, response: ServerResponse, fresh: boolean): void {
    const { options, freshOptions } = this.upstream;
    this.#proxy.web(request, response, fresh ? freshOptions : options).catch(ignore);
  }

  ws(request: ClientMessage, socket: Socket, head: Buffer): void {
    this.#proxy.ws(request, socket, this.upstream.freshOptions, head).catch(ignore);
  }

  /** Logs a failure of the upstream. */
  logFailure(error: unknown, message: string): void {
    const reason = reasonOf(error);
    this.#log("warn", reason, message, { reason });
  }

  close(): void {
    this.upstream.close();
  }
}

/** The promise fails with errors of the client's connection too, which need no answer. */
function ignore(): void {}

/** Who uses a connection to the upstream. */
export interface UpstreamUser {
  onUpstreamTimeout(): void;
}

const users = new WeakMap<Socket, UpstreamUser>();

/**
 * Begins to use a connection to the upstream: from now on its timeouts are this user's. The connection has one listener for all of its users.
 */
export function useConnection(socket: Socket, user: UpstreamUser, { settings, upstream }: UpstreamProxy): void {
  if (!users.has(socket)) {
    socket.on("timeout", () => users.get(socket)?.onUpstreamTimeout());
    leaveFailuresToReading(socket);
  }
  users.set(socket, user);
  const { upstreamConnectTimeoutMs, upstreamTimeoutMs } = settings;
  socket.setTimeout(socket.connecting ? upstreamConnectTimeoutMs : upstreamTimeoutMs);
  if (socket.connecting) socket.once(upstream.isTls ? "secureConnect" : "connect", () => socket.setTimeout(upstreamTimeoutMs));
}

/**
 * An upstream may answer (413) and close in the middle of a body. Then a write fails before the answer has been read, and Node would destroy
 * the connection with it. Reading finds the answer, or the same failure.
 */
function leaveFailuresToReading(socket: Socket): void {
  const { _write: write, _writev: writev } = socket;
  const later = (done: (error?: Error | null) => void) => (error?: Error | null) => {
    if (!/^(?:EPIPE|ECONNRESET)$/.test(codeOf(error))) done(error);
  };
  socket._write = (chunk, encoding, done) => write.call(socket, chunk, encoding, later(done));
  socket._writev = (chunks, done) => writev?.call(socket, chunks, later(done));
}

const mostInformation = 100;

/** Each 1xx restarts the upstream's time. A request may wait for long while the upstream says that it still works (102), but not for ever. */
export function limitInformation(upstreamRequest: ClientRequest): void {
  let many = 0;
  upstreamRequest.on("information", () => {
    if (++many > mostInformation) upstreamRequest.destroy(new InvalidAnswer(`more than ${mostInformation} answers 1xx`));
  });
}

/** Whether a request has a body. Without a length and chunks it has none (RFC 9112 §6.3). */
export function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers["content-length"];
  return headers["transfer-encoding"] !== undefined || (length !== undefined && Number(length) > 0);
}
