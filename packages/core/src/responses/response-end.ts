/** The status of a response that its client did not wait for, as nginx logs it. */
export const clientClosedRequest = 499;

/** What is used of a Node socket. */
export interface NodeSocket {
  readonly destroyed?: boolean;
  once(event: "close", listener: () => void): unknown;
  removeListener(event: "close", listener: () => void): unknown;
}

/** What is used of an HTTP/2 stream. */
export interface NodeStream {
  readonly closed: boolean;
  once(event: "close", listener: () => void): unknown;
}

/** What is used of Node's own response, of HTTP/1 or HTTP/2: typed by structure, since core runs without Node too. */
export interface NodeResponse {
  readonly statusCode: number;
  readonly writableEnded: boolean;
  readonly writableFinished: boolean;
  readonly closed?: boolean;
  /** HTTP/1: null while the response is queued behind another one on its connection, and after it was sent. */
  readonly socket?: object | null;
  readonly req?: { readonly socket?: NodeSocket | null };
  /** HTTP/2 only. */
  readonly stream?: NodeStream;
  once(event: "close", listener: () => void): unknown;
}

/** The end of one response: when it comes, and who waits for it. */
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
 * However many callers wait, a response has one listener. A socket has one while a response that is waited for is queued on it
 * (HTTP/1 pipelining), and none otherwise.
 */
export function whenEnded(response: NodeResponse, ended: (status: number) => void): void {
  let end = ends.get(response);
  if (end === undefined) {
    const { stream } = response;
    // A queued response has no socket yet, and never emits "close" if the client leaves before its turn.
    const socket = stream === undefined && response.socket === null ? response.req?.socket : undefined;
    if (stream?.closed || response.closed || socket?.destroyed) {
      end = { status: isSent(response) ? response.statusCode : clientClosedRequest, listeners: [] };
    } else {
      end = { status: undefined, listeners: [] };
      const close = watch(response, end, socket ?? undefined);
      // HTTP/2: the response of a HEAD request that was cancelled emits nothing; its stream does.
      (stream ?? response).once("close", close);
    }
    ends.set(response, end);
  }
  if (end.status === undefined) end.listeners.push(ended);
  else ended(end.status);
}

/** What to call when a response has closed, which may be called twice. */
function watch(response: NodeResponse, end: End, socket: NodeSocket | undefined): () => void {
  const close = (): void => {
    if (end.status !== undefined) return;
    // HTTP/1 calls a response finished whose socket failed in the middle of it.
    const cut = response.stream === undefined && response.req?.socket?.destroyed === true;
    end.status = isSent(response) && !cut ? response.statusCode : clientClosedRequest;
    queue?.leave(close);
    for (const listener of end.listeners.splice(0)) listener(end.status);
  };
  const queue = socket && queueOf(socket);
  queue?.join(close);
  return close;
}

/** HTTP/2 calls a cancelled response finished, HTTP/1 calls one ended before all of it was written. */
function isSent(response: NodeResponse): boolean {
  return response.writableEnded && response.writableFinished;
}

function queueOf(socket: NodeSocket): Queue {
  let queue = queues.get(socket);
  if (queue === undefined) {
    queue = new Queue(socket);
    queues.set(socket, queue);
  }
  return queue;
}

/** The responses on one socket that were queued when somebody began to wait for them. */
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
