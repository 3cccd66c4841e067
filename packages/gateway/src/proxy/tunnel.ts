import type { ClientRequest, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { clientClosedRequest, type Outcome } from "@floodgate/core/adapter";
import { sendOnSocket } from "./answer.js";
import { failureAnswer, UpstreamTimeout } from "./failure.js";
import type { ClientMessage } from "./message.js";
import { upgradeHead } from "./response-head.js";
import { type UpstreamProxy, type UpstreamUser, useConnection } from "./upstream-proxy.js";

/** A WebSocket: its handshake, then two connections that httpxy joins. */
export class Tunnel implements UpstreamUser {
  readonly #proxy: UpstreamProxy;
  readonly #request: ClientMessage;
  readonly #socket: Socket;
  readonly #outcome: Outcome;
  #upstreamRequest: ClientRequest | undefined;
  #isOpen = false;
  /** Whether the client has an answer, or never gets one. */
  #isAnswered = false;

  constructor(proxy: UpstreamProxy, request: ClientMessage, socket: Socket, outcome: Outcome) {
    this.#proxy = proxy;
    this.#request = request;
    this.#socket = socket;
    this.#outcome = outcome;
    socket.once("close", () => {
      this.#answered(clientClosedRequest);
      if (!this.#isOpen) this.#upstreamRequest?.destroy();
    });
  }

  start(head: Buffer): void {
    this.#request.tunnel = this;
    this.#proxy.ws(this.#request, this.#socket, head);
  }

  /** httpxy is about to send the handshake. Listeners that are added here run before its own. */
  onUpstreamRequest(upstreamRequest: ClientRequest): void {
    this.#upstreamRequest = upstreamRequest;
    upstreamRequest.once("socket", (socket) => useConnection(socket, this, this.#proxy));
    upstreamRequest.once("upgrade", (response, upstreamSocket) => this.#onUpgrade(response, upstreamSocket as Socket));
    upstreamRequest.once("response", (response) => {
      // httpxy needs it for the framing, and removes what concerns one connection only.
      const coding = response.headers["transfer-encoding"];
      response.headers = this.#headersOf(response);
      if (coding !== undefined) response.headers["transfer-encoding"] = coding;
      this.#answered(response.statusCode as number);
    });
  }

  onError(error: Error): void {
    if (this.#isOpen || this.#isAnswered) return;
    this.#proxy.logFailure(error, "The upstream did not answer a WebSocket handshake.");
    const answer = failureAnswer(error);
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

  #onUpgrade(response: IncomingMessage, upstreamSocket: Socket): void {
    response.headers = { ...this.#headersOf(response), connection: "Upgrade", upgrade: "websocket" };
    this.#isOpen = true;
    this.#answered(101);
    const socket = this.#socket;
    socket.once("close", () => upstreamSocket.destroy());
    // Sends first what is still to send.
    upstreamSocket.once("close", () => socket.destroySoon());
    // After httpxy has removed the timeout of the handshake. Both directions pass this connection.
    process.nextTick(() => upstreamSocket.setTimeout(this.#proxy.settings.tunnelTimeoutMs));
  }

  #headersOf(response: IncomingMessage): IncomingMessage["headers"] {
    return upgradeHead(response, this.#outcome.headers, this.#proxy.settings.via);
  }

  #answered(status: number): void {
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    this.#outcome.sent?.(status);
  }
}
