import { readFileSync } from "node:fs";
import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, type ServerResponse } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { isIP, type Socket } from "node:net";
import type { ProxyServer, ProxyServerOptions } from "httpxy";
import { isUnix } from "../config/address.js";
import type { Settings } from "../config/settings.js";
import { sampledLog, type WriteSampled } from "../log/log.js";
import { withFileErrors } from "../service/secrets.js";
import type { Service } from "../service/service.js";
import { type OwnAnswer, problem } from "./answer.js";
import { codeOf, failureOf, InvalidAnswer, kindOf } from "./failures.js";
import type { ClientMessage, UpstreamUser } from "./message.js";

type Target = Extract<ProxyServerOptions["target"], { hostname?: string }>;
type Options = ProxyServerOptions & { readonly agent: HttpAgent };

/** How long an unused connection is kept. A shorter time that the upstream says in `Keep-Alive` wins. */
const idleMs = 60_000;

/** The upstream of the settings, reached by httpxy. What becomes of a request goes to its exchange or tunnel. */
export class Upstream {
  readonly settings: Settings;
  /** The path of the upstream's URL, without a slash at its end. The paths of requests are put after it. */
  readonly prefix: string;
  readonly #isTls: boolean;
  /** For requests on connections that are kept alive. */
  readonly #options: Options;
  /** For a request on a connection of its own. */
  readonly #freshOptions: Options;
  readonly #service: Service;
  readonly #log: WriteSampled;
  readonly #proxy: ProxyServer<ClientMessage, ServerResponse>;
  /** Who uses a connection; undefined while it is kept. */
  readonly #users = new WeakMap<Socket, UpstreamUser | undefined>();

  private constructor(service: Service, proxy: ProxyServer<ClientMessage, ServerResponse>) {
    const { settings } = service;
    const { upstream = "", preserveHost, upstreamInsecure, upstreamMaxConnections: maxSockets = Number.POSITIVE_INFINITY } = settings;
    const target = targetOf(upstream);
    this.settings = settings;
    this.prefix = isUnix(upstream) ? "" : new URL(upstream).pathname.replace(/\/+$/, "");
    this.#isTls = target.protocol === "https:";
    const tls = this.#isTls ? tlsOf(settings, target.hostname as string) : undefined;
    const Agent = this.#isTls ? HttpsAgent : HttpAgent;
    const options = { target, changeOrigin: !preserveHost, secure: !upstreamInsecure, selfHandleResponse: true };
    this.#options = { ...options, agent: new Agent({ keepAlive: true, maxSockets, maxFreeSockets: 1024, timeout: idleMs, ...tls }) };
    this.#freshOptions = { ...options, agent: new Agent({ keepAlive: false, ...tls }) };
    this.#log = sampledLog(service.log);
    this.#service = service;
    this.#proxy = proxy;
    const begin = (upstreamRequest: ClientRequest, request: ClientMessage): void => {
      // httpxy drops a path that is only a slash, and puts a slash before `*`.
      upstreamRequest.path = this.prefix + request.url;
      limitInformation(upstreamRequest);
      request.user?.onUpstreamRequest(upstreamRequest);
    };
    proxy.on("proxyReq", begin);
    proxy.on("proxyReqWs", begin);
    proxy.on("proxyRes", (upstreamResponse, request) => request.user?.onUpstreamResponse?.(upstreamResponse));
    proxy.on("error", (error, request) => request?.user?.onError(error));
  }

  /** @throws FloodgateError `FLOODGATE_INVALID_OPTION` if the file of certificates cannot be read. */
  static async start(service: Service): Promise<Upstream> {
    // httpxy is an ES module, this package is CommonJS too.
    const { ProxyServer } = await import("httpxy");
    return new Upstream(service, new ProxyServer<ClientMessage, ServerResponse>());
  }

  get draining(): boolean {
    return this.#service.draining;
  }

  /** @param fresh whether to use a connection of its own. */
  web(request: ClientMessage, response: ServerResponse, fresh: boolean): void {
    const pass = (): void => void this.#proxy.web(request, response, fresh ? this.#freshOptions : this.#options).catch(ignore);
    if (fresh || mayRepeat(request)) pass();
    // An upstream may have closed a kept connection. After the next poll its end has been read, if it has arrived.
    else setImmediate(setImmediate, pass);
  }

  ws(request: ClientMessage, socket: Socket, head: Buffer): void {
    this.#proxy.ws(request, socket, this.#freshOptions, head).catch(ignore);
  }

  /** A user begins to use a connection: from now on its timeouts are this user's. The connection has one listener for all of its users. */
  useConnection(socket: Socket, user: UpstreamUser): void {
    if (!this.#users.has(socket)) {
      socket.on("timeout", () => this.#giveUpUnlessRead(socket)).on("free", () => this.#users.set(socket, undefined));
      // Node would use a connection again for some turns after its end was read.
      socket.once("end", () => this.#users.get(socket) === undefined && socket.destroy().emit("agentRemove"));
      leaveFailuresToReading(socket);
    }
    this.#users.set(socket, user);
    const { upstreamConnectTimeoutMs, upstreamTimeoutMs } = this.settings;
    socket.setTimeout(socket.connecting ? upstreamConnectTimeoutMs : upstreamTimeoutMs);
    if (socket.connecting) socket.once(this.#isTls ? "secureConnect" : "connect", () => socket.setTimeout(upstreamTimeoutMs));
  }

  /** The timer of a busy process is late, and fires before it reads what has arrived in time. */
  #giveUpUnlessRead(socket: Socket): void {
    const { bytesRead, connecting } = socket;
    const user = this.#users.get(socket);
    setImmediate(() => {
      const isSilent = socket.bytesRead === bytesRead && socket.connecting === connecting;
      if (isSilent && this.#users.get(socket) === user) user?.onUpstreamTimeout();
    });
  }

  /** What a client is told whose request the upstream fails. Logs the failure. */
  answerTo(error: unknown): OwnAnswer {
    const [status, detail] = failureOf(error);
    this.logFailure(error, detail);
    return problem(status, detail);
  }

  /** Logs a failure of the upstream. */
  logFailure(error: unknown, message: string): void {
    const reason = kindOf(error);
    this.#log("warn", reason, message, { reason });
  }

  close(): void {
    this.#options.agent.destroy();
    this.#freshOptions.agent.destroy();
  }
}

/** The promise fails with errors of the client's connection too, which need no answer. */
function ignore(): void {}

function targetOf(upstream: string): Target {
  if (isUnix(upstream)) return { protocol: "http:", host: "localhost", hostname: "localhost", socketPath: upstream.slice("unix:".length) };
  const { protocol, host, hostname, port } = new URL(upstream);
  return {
    protocol,
    // For the Host header: without it, httpxy adds the default port.
    host,
    // A URL puts an IPv6 address in brackets, a connection takes it without.
    hostname: hostname.replace(/^\[|\]$/g, ""),
    port: port === "" ? (protocol === "https:" ? 443 : 80) : Number(port),
  };
}

/** The certificate must be the upstream's own, whatever host the client names. */
function tlsOf(
  { upstreamCaFile, upstreamInsecure }: Settings,
  hostname: string,
): { servername: string; rejectUnauthorized: boolean; ca?: string } {
  const base = { servername: isIP(hostname) === 0 ? hostname : "", rejectUnauthorized: !upstreamInsecure };
  if (upstreamCaFile === undefined) return base;
  return { ...base, ca: withFileErrors("upstreamCaFile", upstreamCaFile, () => readFileSync(upstreamCaFile, "utf8")) };
}

/**
 * An upstream may answer (413) and close in the middle of a body. Then a write fails before the answer has been read, and Node would destroy
 * the connection with it. Reading finds the answer, or the same failure. Such a write never ends, so nothing else would close the connection,
 * and a later request on it would wait for ever.
 */
function leaveFailuresToReading(socket: Socket): void {
  const { _write: write, _writev: writev } = socket;
  const destroy = (): void => void socket.destroy();
  const later = (done: (error?: Error | null) => void) => (error?: Error | null) => {
    if (!/^(?:EPIPE|ECONNRESET)$/.test(codeOf(error))) done(error);
    else socket.once("end", destroy).prependOnceListener("free", destroy);
  };
  socket._write = (chunk, encoding, done) => write.call(socket, chunk, encoding, later(done));
  socket._writev = (chunks, done) => writev?.call(socket, chunks, later(done));
}

const maxInformation = 100;

/** Each 1xx restarts the upstream's time. A request may wait for long while the upstream says that it still works (102), but not for ever. */
function limitInformation(upstreamRequest: ClientRequest): void {
  let many = 0;
  upstreamRequest.on("information", () => {
    if (++many > maxInformation) upstreamRequest.destroy(new InvalidAnswer(`more than ${maxInformation} answers 1xx`));
  });
}

/** Requests with these methods and no body may be sent again: twice is the same as once (RFC 9110 §9.2.2). */
const idempotent = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]);

export function mayRepeat(request: IncomingMessage): boolean {
  return idempotent.has(request.method as string) && !hasBody(request);
}

/** Whether a request has a body. Without a length and chunks it has none (RFC 9112 §6.3). */
export function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers["content-length"];
  return headers["transfer-encoding"] !== undefined || (length !== undefined && Number(length) > 0);
}
