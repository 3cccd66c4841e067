import { type ClientRequest, type IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { clientClosedRequest, type Outcome } from "@floodgate/core/adapter";
import { sendOnSocket } from "./answer.js";
import { Exchange } from "./exchange.js";
import { UpstreamTimeout } from "./failures.js";
import type { ClientMessage, UpstreamUser } from "./message.js";
import { upgradeHead } from "./response-head.js";
import type { Upstream } from "./upstream.js";

/** A WebSocket: its handshake, then two connections that httpxy joins. */
export class Tunnel implements UpstreamUser {
  readonly #upstream: Upstream;
  readonly #request: ClientMessage;
  readonly #socket: Socket;
  readonly #outcome: Outcome;
  #upstreamRequest: ClientRequest | undefined;
  #isOpen = false;
  /** Whether the client has an answer, or never gets one. */
  #isAnswered = false;

  constructor(upstream: Upstream, request: ClientMessage, socket: Socket, outcome: Outcome) {
    this.#upstream = upstream;
    this.#request = request;
    this.#socket = socket;
    this.#outcome = outcome;
    socket.once("close", () => {
      this.#answered(clientClosedRequest);
      if (!this.#isOpen) this.#upstreamRequest?.destroy();
    });
  }

  start(head: Buffer): void {
    this.#request.user = this;
    this.#upstream.ws(this.#request, this.#socket, head);
  }

  /** httpxy is about to send the handshake. Listeners that are added here run before its own. */
  onUpstreamRequest(upstreamRequest: ClientRequest): void {
    this.#upstreamRequest = upstreamRequest;
    upstreamRequest.once("socket", (socket) => {
      this.#upstream.useConnection(socket, this);
      // httpxy would write an ordinary answer as it came, checked by nobody.
      upstreamRequest.removeAllListeners("response");
      upstreamRequest.once("response", (response) => this.#onResponse(upstreamRequest, response));
    });
    upstreamRequest.once("upgrade", (response, upstreamSocket) => this.#onUpgrade(response, upstreamSocket as Socket));
  }

  onError(error: Error): void {
    if (this.#isOpen || this.#isAnswered) return;
    const answer = this.#upstream.answerTo(error);
    this.#answered(answer.status);
    sendOnSocket(this.#socket, { ...answer, headers: [...answer.headers, ...this.#outcome.headers] });
  }

  onUpstreamTimeout(): void {
    if (this.#isOpen) {
      this.#socket.destroy();
      return;
    }
    const isConnecting = this.#upstreamRequest?.socket?.connecting === true;
    this.#upstreamRequest?.destroy(new UpstreamTimeout(isConnecting ? "connect" : "answer"));
  }

  /** The upstream refuses the upgrade. Node writes its answer like that to any request, and then the connection ends. */
  #onResponse(upstreamRequest: ClientRequest, upstreamResponse: IncomingMessage): void {
    if (this.#socket.destroyed) {
      upstreamResponse.destroy();
      return;
    }
    const response = new ServerResponse(this.#request);
    response.shouldKeepAlive = false;
    response.assignSocket(this.#socket);
    response.once("finish", () => {
      this.#answered(response.statusCode);
      this.#socket.destroySoon();
    });
    // At an upgrade, Node's server has stopped to tell responses that they may write on.
    this.#socket.on("drain", () => response.emit("drain"));
    const exchange = new Exchange(this.#upstream, this.#request, response, this.#outcome.headers, false);
    exchange.takeOver(upstreamRequest, upstreamResponse);
  }

  #onUpgrade(response: IncomingMessage, upstreamSocket: Socket): void {
    const headers = upgradeHead(response, this.#outcome.headers, this.#upstream.settings.via);
    this.#request.upstreamResponse = response;
    response.headers = { ...headers, connection: "Upgrade", upgrade: "websocket" };
    this.#isOpen = true;
    const socket = this.#socket;
    // What a tunnel holds, it holds until it closes.
    const holds = this.#outcome.checks.some(({ limit }) => limit.policy.holdMs !== undefined);
    if (holds) socket.once("close", () => this.#answered(101));
    else this.#answered(101);
    socket.once("close", () => upstreamSocket.destroy());
    // Sends first what is still to send.
    upstreamSocket.once("close", () => socket.destroySoon());
    const { tunnelTimeoutMs, upstreamTimeoutMs } = this.#upstream.settings;
    // After httpxy has removed the timeout of the handshake. Both directions pass this connection.
    process.nextTick(() => {
      upstreamSocket.setTimeout(tunnelTimeoutMs);
      // The client may have gone, or may still read. So the upstream may go on as long as it sends.
      socket.once("end", () => upstreamSocket.setTimeout(Math.min(tunnelTimeoutMs, upstreamTimeoutMs)));
    });
  }

  #answered(status: number): void {
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    this.#outcome.afterResponse?.(status);
  }
}
