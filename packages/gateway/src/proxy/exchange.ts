import type { ClientRequest, IncomingMessage, InformationEvent, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Header } from "@floodgate/core/adapter";
import { type OwnAnswer, problem, send } from "./answer.js";
import { codeOf, InvalidAnswer, UpstreamTimeout } from "./failures.js";
import { type ClientMessage, pairsOf, type UpstreamUser } from "./message.js";
import { responseHead } from "./response-head.js";
import { hasBody, mayRepeat, type Upstream } from "./upstream.js";

/** One request on its way to the upstream and back. httpxy sends it and pipes its body; here is what it leaves to us. */
export class Exchange implements UpstreamUser {
  readonly #upstream: Upstream;
  readonly #request: ClientMessage;
  readonly #response: ServerResponse;
  readonly #limits: readonly Header[];
  /** Whether the client waits for a 100 before it sends its body. */
  #expects: boolean;
  #hasRetried = false;
  #upstreamRequest: ClientRequest | undefined;
  #upstreamResponse: IncomingMessage | undefined;
  /** What the connection had received before this exchange. */
  #bytesBefore = 0;

  /** @param limits our rate limit headers. */
  constructor(upstream: Upstream, request: ClientMessage, response: ServerResponse, limits: readonly Header[], expects: boolean) {
    this.#upstream = upstream;
    this.#request = request;
    this.#response = response;
    this.#limits = limits;
    this.#expects = expects && hasBody(request);
  }

  /** Whether it is the client's turn: to send more of its body, or to read more of the response. */
  get waitsForClient(): boolean {
    const { socket, writableNeedDrain, writableEnded } = this.#response;
    // A response on the connection of a WebSocket is not told when it may write on.
    if ((socket?.writableNeedDrain ?? writableNeedDrain) || writableEnded) return true;
    return !this.#request.complete && this.#upstreamRequest?.writableNeedDrain === false && !this.#expects;
  }

  start(): void {
    const { upstream, request, response } = this.#parts;
    const { maxBodyBytes } = upstream.settings;
    if (maxBodyBytes !== undefined && Number(request.headers["content-length"]) > maxBodyBytes) {
      this.#refuse(tooLarge(maxBodyBytes));
      return;
    }
    request.user = this;
    upstream.web(request, response, this.#hasRetried);
  }

  /** httpxy has a connection for the request, and sends it next. */
  onUpstreamRequest(upstreamRequest: ClientRequest): void {
    const { upstream, request, response } = this.#parts;
    const socket = upstreamRequest.socket as Socket;
    if (response.destroyed || response.writableEnded) {
      upstreamRequest.destroy();
      return;
    }
    this.#upstreamRequest = upstreamRequest;
    this.#bytesBefore = socket.bytesRead;
    upstream.useConnection(socket, this);
    const { maxBodyBytes } = upstream.settings;
    upstreamRequest.on("information", (info) => this.#onInformation(info));
    upstreamRequest.once("upgrade", (_response, socket) => {
      socket.destroy();
      this.#fail(new InvalidAnswer("101 to a request that asked for no upgrade"));
    });
    // Trailers end here: an upstream may take them for headers, which rules have not seen.
    if (maxBodyBytes !== undefined && request.headers["transfer-encoding"] !== undefined) this.#limitBody(maxBodyBytes);
    if (this.#expects) {
      upstreamRequest.setHeader("Expect", "100-continue");
      upstreamRequest.flushHeaders();
    }
  }

  /** The upstream answers a WebSocket handshake without an upgrade. */
  takeOver(upstreamRequest: ClientRequest, upstreamResponse: IncomingMessage): void {
    this.#request.user = this;
    this.#upstreamRequest = upstreamRequest;
    this.#upstream.useConnection(upstreamRequest.socket as Socket, this);
    this.onUpstreamResponse(upstreamResponse);
  }

  onUpstreamResponse(upstreamResponse: IncomingMessage): void {
    this.#upstreamResponse = upstreamResponse;
    // After the bytes that came with the head have been parsed: they may be invalid, or all of the body.
    process.nextTick(() => this.#answer(upstreamResponse));
  }

  #answer(upstreamResponse: IncomingMessage): void {
    const { upstream, request, response } = this.#parts;
    if (response.headersSent || response.destroyed) {
      upstreamResponse.destroy();
      return;
    }
    const status = upstreamResponse.statusCode as number;
    const hasChunks = request.httpVersion === "1.1" && request.method !== "HEAD" && status !== 204 && status !== 205 && status !== 304;
    const head = responseHead(upstreamResponse, this.#limits, hasChunks, upstream.settings.via);
    if (upstream.draining) head.push("Connection", "close");
    try {
      if (upstreamResponse.httpVersionMajor !== 1) throw new InvalidAnswer(`HTTP/${upstreamResponse.httpVersion}`);
      if (status < 200) throw new InvalidAnswer(`the status ${status}`);
      // Node takes the chunks off, if it knows them, and leaves other codings in the body. Some apps name the chunks twice.
      const coding = upstreamResponse.headers["transfer-encoding"];
      if (coding !== undefined && !/^(?:chunked[\s,]*)*$/i.test(coding)) throw new InvalidAnswer(`the transfer coding ${coding}`);
      response.writeHead(status, upstreamResponse.statusMessage, head);
    } catch (error) {
      this.#upstreamRequest?.destroy();
      this.#fail(error);
      return;
    }
    request.upstreamResponse = upstreamResponse;
    const addTrailers = (): void => {
      if (hasChunks && upstreamResponse.rawTrailers.length > 0) response.addTrailers(trailersOf(upstreamResponse));
    };
    if (status === 205) {
      upstreamResponse.resume();
      response.end();
    } else if (upstreamResponse.complete) {
      // Most responses are small, and all of their body came with the head: nothing to wait for.
      const body: Buffer | null = upstreamResponse.read();
      upstreamResponse.resume();
      addTrailers();
      response.end(body ?? undefined);
    } else {
      const cut = (): void => this.#cut();
      upstreamResponse.once("error", cut).once("aborted", cut).once("end", addTrailers);
      // Without a part of the body, the head would wait for it: a stream of events may have none for long.
      if (upstreamResponse.readableLength === 0) response.flushHeaders();
      upstreamResponse.pipe(response);
    }
  }

  onError(error: Error): void {
    const response = this.#response;
    // A complete answer counts, whatever follows it: the body of a HEAD or of a 204, for example.
    if (response.destroyed || response.writableEnded || this.#upstreamResponse?.complete) return;
    if (response.headersSent) this.#cut();
    else if (this.#mayRetry(error)) {
      this.#hasRetried = true;
      this.#upstream.web(this.#request, response, true);
    } else this.#fail(error);
  }

  onUpstreamTimeout(): void {
    const response = this.#response;
    const upstreamRequest = this.#upstreamRequest;
    const socket = upstreamRequest?.socket as Socket | undefined;
    if (upstreamRequest === undefined || socket === undefined || response.destroyed || response.writableFinished) return;
    if (!socket.connecting && this.waitsForClient) {
      // The client has its own time.
      socket.setTimeout(this.#upstream.settings.upstreamTimeoutMs);
      return;
    }
    const error = new UpstreamTimeout(socket.connecting ? "connect" : "answer");
    if (this.#upstreamResponse !== undefined) this.#upstream.logFailure(error, "The upstream stopped in the middle of a response.");
    upstreamRequest.destroy(error);
  }

  /**
   * Whether this is the race of a kept connection: the upstream closed it while the request was on its way. Then it has not handled the
   * request, as far as one can know.
   */
  #mayRetry(error: Error): boolean {
    const upstreamRequest = this.#upstreamRequest;
    const code = codeOf(error);
    return (
      !this.#hasRetried &&
      upstreamRequest?.reusedSocket === true &&
      (code === "ECONNRESET" || code === "EPIPE") &&
      upstreamRequest.socket?.bytesRead === this.#bytesBefore &&
      mayRepeat(this.#request)
    );
  }

  #onInformation(info: InformationEvent): void {
    const { request, response } = this.#parts;
    if (response.headersSent || response.destroyed || request.httpVersion === "1.0") return;
    if (info.statusCode === 100) {
      if (!this.#expects) return;
      this.#expects = false;
      response.writeContinue();
    } else if (info.statusCode === 102) response.writeProcessing();
    else if (info.statusCode === 103) {
      const hints = info.headers["link"];
      // Node's own method throws for several links in one line, which is how its server sends them.
      if (hints !== undefined) request.socket.write(`HTTP/1.1 103 Early Hints\r\nLink: ${hints}\r\n\r\n`, "latin1");
    }
  }

  #limitBody(most: number): void {
    let bytes = 0;
    this.#request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= most || this.#response.headersSent) return;
      this.#refuse(tooLarge(most));
      this.#upstreamRequest?.destroy();
    });
  }

  #fail(error: unknown): void {
    this.#refuse(this.#upstream.answerTo(error));
  }

  /** Answers in place of the upstream, which is left. Ends the connection if the response has begun. */
  abort(answer: OwnAnswer): void {
    if (this.#response.headersSent) this.#response.destroy();
    else this.#refuse(answer, true);
    this.#upstreamRequest?.destroy();
  }

  /** The rest of the body is read and dropped, so that the client can read the answer and use its connection again. */
  #refuse(answer: OwnAnswer, close = false): void {
    const { upstream, request, response } = this.#parts;
    send(response, { ...answer, headers: [...answer.headers, ...this.#limits] }, close || upstream.draining);
    request.unpipe();
    request.resume();
  }

  /** Ends an incomplete response by closing the connection, so that the client sees that a part is missing. */
  #cut(): void {
    const { request, response } = this.#parts;
    if (response.destroyed) return;
    this.#upstream.logFailure(this.#upstreamResponse?.errored ?? new Error("aborted"), "A response ended before it was complete.");
    // Without a length and chunks, only a reset tells.
    if (request.httpVersion === "1.0" && request.socket.remoteAddress !== undefined) request.socket.resetAndDestroy();
    else response.destroy();
  }

  get #parts() {
    return { upstream: this.#upstream, request: this.#request, response: this.#response };
  }
}

function tooLarge(most: number): OwnAnswer {
  return problem(413, `The body may have at most ${most} bytes.`);
}

/** The trailers of a response as pairs. Those that change framing, cookies or limits are dropped. */
function trailersOf({ rawTrailers }: IncomingMessage): [string, string][] {
  return [...pairsOf(rawTrailers)].filter(([name]) => !notInTrailers.test(name));
}

const notInTrailers =
  /^(?:connection|content-length|transfer-encoding|trailer|host|te|upgrade|keep-alive|proxy-.*|expect|authorization|cookie|set-cookie|forwarded|x-forwarded-.*|ratelimit.*|x-ratelimit.*|retry-after)$/i;
