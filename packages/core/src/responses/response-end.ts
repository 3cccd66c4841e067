import { getOrMake } from "../support/maps.js";

/** The status of a response that its client did not wait for, as nginx logs it. */
export const clientClosedRequest = 499;

/** The used part of a Node socket. */
export interface NodeSocket {
  readonly destroyed?: boolean;
  once(event: "close", listener: () => void): unknown;
  removeListener(event: "close", listener: () => void): unknown;
}

/** The used part of an HTTP/2 stream. */
export interface NodeStream {
  readonly closed: boolean;
  readonly aborted: boolean;
  readonly rstCode: number | undefined;
  readonly sentHeaders: { readonly [name: string]: unknown } | undefined;
  close(code: number): unknown;
  once(event: "close", listener: () => void): unknown;
}

/** The used part of Node's HTTP/1 or HTTP/2 response. Typed by structure, because core also runs without Node. */
export interface NodeResponse {
  statusCode: number;
  readonly writableEnded: boolean;
  readonly writableFinished: boolean;
  readonly closed?: boolean;
  /** HTTP/1: null while the response is queued behind another one on its connection, and after it was sent. */
  readonly socket?: object | null;
  readonly req?: { readonly socket?: NodeSocket | null; readonly upgrade?: boolean | null };
  /** HTTP/2 only. */
  readonly stream?: NodeStream;
  /** True for a response that Fastify's `inject` has made. */
  readonly isLightMyRequest?: boolean;
  /** HTTP/1 only. */
  destroy?(): unknown;
  end?(body: string): unknown;
  once(event: "close" | "finish", listener: () => void): unknown;
}

interface End {
  /** Undefined until the response has ended. */
  status: number | undefined;
  readonly listeners: ((status: number) => void)[];
}

const ends = new WeakMap<NodeResponse, End>();
const queues = new WeakMap<NodeSocket, Queue>();

/**
 * Calls `ended` exactly once when a response is over: with its status if all of it was sent, or with 499 if its client left first.
 * Calls it at once if the response is over already.
 *
 * A response gets one listener for any number of callers. A socket of HTTP/1 gets one while it has watched responses.
 */
export function whenEnded(response: NodeResponse, ended: (status: number) => void): void {
  let end = ends.get(response);
  if (end === undefined) {
    end = { status: undefined, listeners: [] };
    ends.set(response, end);
    const { stream } = response;
    const noConnection = hasNoConnection(response);
    // A response that waits behind another one, or whose socket the app has taken over (`detachSocket`), never emits "close" itself.
    const socket = stream === undefined && !noConnection ? response.req?.socket : undefined;
    if (stream?.closed || response.closed || socket?.destroyed || (noConnection && response.writableEnded)) {
      end.status = statusOf(response, noConnection);
    } else {
      const close = watch(response, end, socket ?? undefined, noConnection);
      // HTTP/2: the response of a HEAD request that was cancelled emits nothing; its stream does.
      (stream ?? response).once("close", close);
      if (noConnection) response.once("finish", () => close(true));
    }
  }
  if (end.status === undefined) end.listeners.push(ended);
  else ended(end.status);
}

/** Returns the callback for the end of the response, and whether all of it was sent if that is certain. It may be called twice. */
function watch(response: NodeResponse, end: End, socket: NodeSocket | undefined, noConnection: boolean): (sent?: true) => void {
  const close = (sent?: true): void => {
    if (end.status !== undefined) return;
    end.status = sent ? response.statusCode : statusOf(response, noConnection, true);
    queue?.leave(close);
    for (const listener of end.listeners.splice(0)) listener(end.status);
  };
  const queue = socket && getOrMake(queues, socket, () => new Queue(socket));
  queue?.join(close);
  return close;
}

/**
 * Whether a library has made the response: Fastify's `inject`, or one that runs apps on AWS Lambda. It may never close, and may not be marked
 * as ended or finished when it finishes. Its socket is no emitter, except that of `inject`.
 */
export function hasNoConnection({ isLightMyRequest = false, stream, socket }: NodeResponse): boolean {
  return isLightMyRequest || (stream === undefined && socket !== null && !(socket !== undefined && "once" in socket));
}

/** The status of a response that was sent completely, 101 of a WebSocket, else 499. */
function statusOf(response: NodeResponse, noConnection: boolean, justClosed = false): number {
  const { stream } = response;
  if (stream !== undefined) {
    // Only the stream knows: it marks a cancelled response as finished, and an app may have answered by `stream.respondWithFile`.
    return (stream.rstCode === 0 && !stream.aborted && (stream.sentHeaders?.[":status"] as number)) || clientClosedRequest;
  }
  // HTTP/1 marks a response as ended before it is written, and as finished even if its socket failed in the middle.
  const cut = justClosed && response.req?.socket?.destroyed;
  if (response.writableEnded && (response.writableFinished || noConnection) && !cut) return response.statusCode;
  // A WebSocket was taken over before its socket closed. Node sets `upgrade` only where the server takes upgrades.
  return response.req?.upgrade ? 101 : clientClosedRequest;
}

/** The watched responses of one socket. */
class Queue {
  readonly #socket: NodeSocket;
  readonly #open = new Set<() => void>();
  readonly #closed = (): void => {
    for (const close of [...this.#open]) close();
  };

  constructor(socket: NodeSocket) {
    this.#socket = socket;
  }

  join(close: () => void): void {
    if (this.#open.size === 0) this.#socket.once("close", this.#closed);
    this.#open.add(close);
  }

  leave(close: () => void): void {
    if (this.#open.delete(close) && this.#open.size === 0) this.#socket.removeListener("close", this.#closed);
  }
}
