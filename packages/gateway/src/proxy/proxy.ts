import { createServer, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { HeldRequests, isPromise, type Outcome, type Promised, whenEnded } from "@floodgate/core/adapter";
import { isUnix } from "../config/address.js";
import { listen, type RunningServer } from "../service/listen.js";
import type { Service } from "../service/service.js";
import type { Peer } from "../service/trust.js";
import { type OwnAnswer, problem, send, sendOnSocket } from "./answer.js";
import { Exchange } from "./exchange.js";
import { codeOf } from "./failures.js";
import { ClientMessage, ProxiedRequest } from "./message.js";
import { refusal } from "./refusal.js";
import { type RequestHeaders, requestHeaders } from "./request-headers.js";
import { Tunnel } from "./tunnel.js";
import { isHandshake, upgrades, withoutUpgrade } from "./upgrade.js";
import { hasBody, Upstream } from "./upstream.js";

/**
 * Starts the reverse proxy on the address `listen`.
 * @throws FloodgateError if the upstream's settings are wrong, or the address is taken.
 */
export async function startProxy(service: Service): Promise<RunningServer> {
  const proxy = new ReverseProxy(service, await Upstream.start(service));
  const { listen: address, closeMs } = service.settings;
  const server = await listen(proxy.server, "listen", address, closeMs);
  return { ...server, close: () => proxy.close(server) };
}

/** A request that is being decided: an ordinary one, or the handshake of a WebSocket. */
interface PendingRequest {
  answer(answer: OwnAnswer): void;
  /** Calls `left` once the client has its answer, or has left. */
  onLeft(left: () => void): void;
  /** Called once the limits have let it through. Returns what passes it on. */
  begin(outcome: Outcome): () => void;
}

/** A client's connection. */
class Connection {
  readonly peer: Peer;
  /** Whether a request was refused, or bytes followed it that are no request. What comes after it on this connection is not trusted, and not read. */
  isRefused = false;
  /** What answers bytes that are no request, after the responses before them. */
  refusal: OwnAnswer | undefined = undefined;
  /** The response to the newest request, while one is open. */
  newest: ServerResponse<ClientMessage> | undefined = undefined;
  /** Requests whose response is not over. More than one if the client pipelines: all but the oldest wait. */
  open = 0;
  /** Requests that wait for their decision or are held. */
  pending = 0;
  /** The oldest open request, if it was passed on. */
  exchange: Exchange | undefined = undefined;

  constructor(peer: Peer) {
    this.peer = peer;
  }

  /** Whether it is the client's turn: to send more, or to read more. */
  get waitsForClient(): boolean {
    return this.open === 0 || (this.pending === 0 && this.exchange?.waitsForClient !== false);
  }
}

/** The way of a request: refuse what is dangerous, ask the limits, hold it if they say so, pass it on. */
class ReverseProxy {
  readonly server: Server<typeof ClientMessage>;
  readonly #service: Service;
  readonly #upstream: Upstream;
  /** The connections of all clients, those of WebSockets included. */
  readonly #connections = new Map<Socket, Connection>();
  readonly #headers: RequestHeaders;
  readonly #waiting = new HeldRequests();

  constructor(service: Service, upstream: Upstream) {
    const { settings } = service;
    const { clientTimeoutMs, keepAliveTimeoutMs, maxHeaderBytes } = settings;
    this.#service = service;
    this.#upstream = upstream;
    this.#headers = requestHeaders(settings);
    this.server = createServer({
      IncomingMessage: ClientMessage,
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: clientTimeoutMs,
      // A large upload may take long. `clientTimeoutMs` limits its pauses.
      requestTimeout: 0,
      keepAliveTimeout: keepAliveTimeoutMs,
      connectionsCheckingInterval: Math.min(clientTimeoutMs, 5000),
      noDelay: true,
      ...upgrades,
    });
    // Node drops further headers silently, `Transfer-Encoding` too. `maxHeaderBytes` is the limit.
    this.server.maxHeadersCount = 0;
    this.server.timeout = clientTimeoutMs;
    this.#listen();
  }

  /** Ends idle connections at once, and all that is left when `closeMs` is over: WebSockets too, which end only then. */
  async close(server: RunningServer): Promise<void> {
    const deadline = setTimeout(() => {
      for (const socket of this.#connections.keys()) socket.destroy();
    }, this.#service.settings.closeMs);
    await server.close();
    clearTimeout(deadline);
    this.#upstream.close();
  }

  #listen(): void {
    const { server } = this;
    server.on("connection", (socket: Socket) => this.#accept(socket));
    server.on("request", (request, response) => this.#receive(request, response, false));
    server.on("checkContinue", (request, response) => this.#receive(request, response, true));
    server.on("upgrade", (request, socket, head) => this.#upgrade(request, socket as Socket, head));
    server.on("connect", (_request, socket) => this.#answerOn(socket as Socket, problem(405, "The gateway is no forward proxy.")));
    server.on("timeout", (socket) => this.#onTimeout(socket));
    server.on("clientError", (error, socket) => this.#onClientError(error, socket as Socket));
  }

  #accept(socket: Socket): void {
    // A connection that was parsed a second time, because it had asked for an upgrade that is ignored.
    if (this.#connections.has(socket)) return;
    const { trust, settings } = this.#service;
    const peer = trust.peer(socket.remoteAddress, isUnix(settings.listen));
    if (peer === undefined) {
      socket.destroy();
      return;
    }
    this.#connections.set(socket, new Connection(peer));
    socket.once("close", () => this.#connections.delete(socket));
  }

  #receive(request: ClientMessage, response: ServerResponse<ClientMessage>, expects: boolean): void {
    const { socket } = request;
    const connection = this.#connections.get(socket);
    if (connection === undefined || connection.isRefused) return;
    const { newest: before } = connection;
    connection.open++;
    connection.newest = response;
    // Node drops what arrived together with the end of this body. See `upgrades`.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false;
    whenEnded(response, () => {
      connection.open--;
      connection.exchange = undefined;
      if (connection.open === 0) connection.newest = undefined;
      // Its head may have been sent before the reason to close was known.
      if ((this.#service.draining || connection.isRefused) && connection.open === 0) end(socket, connection.refusal);
    });
    const refused = refusal(request, this.#upstream.prefix !== "");
    if (refused !== undefined) {
      connection.isRefused = true;
      send(response, refused, true);
      return;
    }
    const begin = (): void => {
      // Its client has left, or was told that no more follows. Or its body is malformed.
      if (!socket.writable || (connection.isRefused && !request.complete)) {
        end(socket, connection.refusal);
        return;
      }
      const asked = new ProxiedRequest(request, connection.peer, this.#service.trust, this.#headers);
      this.#decide(asked, connection, {
        answer: (answer) => send(response, answer, this.#service.draining),
        onLeft: (left) => whenEnded(response, left),
        begin: (outcome) => {
          if (outcome.afterResponse !== undefined) whenEnded(response, outcome.afterResponse);
          return () => {
            request.headers = asked.headers;
            connection.exchange = new Exchange(this.#upstream, request, response, outcome.headers, expects);
            connection.exchange.start();
          };
        },
      });
    };
    // One connection must not open many to the upstream, and a GET sees what a POST before it has done.
    if (before === undefined) begin();
    else whenEnded(before, begin);
  }

  #upgrade(request: ClientMessage, socket: Socket, head: Buffer): void {
    const connection = this.#connections.get(socket);
    // An answer would be sent in the middle of those before it.
    if (connection === undefined || connection.isRefused || connection.open > 0) {
      socket.destroy();
      return;
    }
    if (!isHandshake(request)) {
      withoutUpgrade(this.server, request, socket, head);
      return;
    }
    // Node has removed its own listener.
    socket.on("error", () => undefined);
    const refused = hasBody(request) ? problem(400, "A WebSocket handshake has no body.") : refusal(request, this.#upstream.prefix !== "");
    if (refused !== undefined) {
      sendOnSocket(socket, refused);
      return;
    }
    const asked = new ProxiedRequest(request, connection.peer, this.#service.trust, this.#headers, "websocket");
    this.#decide(asked, connection, {
      answer: (answer) => sendOnSocket(socket, answer),
      onLeft: (left) => socket.once("close", left),
      begin: (outcome) => {
        const tunnel = new Tunnel(this.#upstream, request, socket, outcome);
        return () => {
          request.headers = asked.headers;
          tunnel.start(head);
        };
      },
    });
  }

  #decide(asked: ProxiedRequest, connection: Connection, pending: PendingRequest): void {
    connection.pending++;
    const answer = (answer: OwnAnswer): void => {
      connection.pending--;
      pending.answer(answer);
    };
    const apply = (outcome: Outcome): void => {
      if (outcome.action === "reject") {
        answer(outcome);
        return;
      }
      const start = pending.begin(outcome);
      const pass = (): void => {
        connection.pending--;
        start();
      };
      // Its body is not read while it is held.
      if (outcome.delayMs === 0) pass();
      else if (this.#waiting.size < this.#service.settings.maxHeld) pending.onLeft(this.#waiting.hold(outcome.delayMs, pass));
      else answer(problem(503, "Too many requests wait for their turn.", { name: "Retry-After", value: "1" }));
    };
    const fail = (error: unknown): void => {
      this.#service.log.error({ err: error }, "A request could not be decided.");
      answer(problem(500, "The request's limits could not be checked."));
    };
    let outcome: Promised<Outcome>;
    try {
      outcome = this.#service.limit.decide(asked);
    } catch (error) {
      fail(error);
      return;
    }
    if (isPromise(outcome)) outcome.then(apply, fail);
    else apply(outcome);
  }

  /** A connection was idle for `clientTimeoutMs`. If the upstream is to blame, its own time counts. */
  #onTimeout(socket: Socket): void {
    const connection = this.#connections.get(socket);
    if (connection?.waitsForClient === false) {
      socket.setTimeout(this.#service.settings.clientTimeoutMs);
      return;
    }
    if (connection?.exchange === undefined) socket.destroy();
    else connection.exchange.abort(problem(408, "The body did not arrive in time."));
  }

  #onClientError(error: Error, socket: Socket): void {
    const answer = answerTo(codeOf(error));
    const connection = this.#connections.get(socket);
    if (answer === undefined || connection === undefined) socket.destroy();
    else if (connection.isRefused) return;
    else if (connection.open > (connection.newest?.req.complete ? 0 : 1)) {
      connection.isRefused = true;
      connection.refusal = answer;
    } else if (connection.exchange === undefined) this.#answerOn(socket, answer);
    else connection.exchange.abort(answer);
  }

  /** Answers a message that is no request. */
  #answerOn(socket: Socket, answer: OwnAnswer): void {
    socket.on("error", () => undefined);
    if (this.#connections.get(socket)?.open === 0) sendOnSocket(socket, answer);
    else socket.destroy();
  }
}

/** Ends a connection, after an answer if there is one and the client still reads. */
function end(socket: Socket, answer: OwnAnswer | undefined): void {
  if (answer !== undefined && socket.writable) sendOnSocket(socket, answer);
  else if (!socket.destroyed) socket.destroySoon();
}

/** What a client is told whose bytes are no request; undefined if it has left. */
function answerTo(code: string): OwnAnswer | undefined {
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return problem(408, "The headers did not arrive in time.");
  if (code === "HPE_HEADER_OVERFLOW") return problem(431, "The headers are too large.");
  if (code === "HPE_CHUNK_EXTENSIONS_OVERFLOW") return problem(413, "The chunk extensions are too large.");
  return code.startsWith("HPE_") ? problem(400, "The request is not valid HTTP/1.1.") : undefined;
}
