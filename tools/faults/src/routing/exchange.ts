import { EventEmitter } from "node:events";
import { IncomingMessage, type RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** A request as a server passes it to an app. The target is not changed, even if only HTTP/2 allows it. */
export interface Sent {
  readonly method: string;
  readonly target: string;
}

/** Sends a request to an app without a connection, and waits for the response. */
export function exchange(listener: RequestListener, { method, target }: Sent): Promise<number> {
  const socket = Object.assign(new EventEmitter(), { remoteAddress: "127.0.0.1", encrypted: false, destroy: () => undefined });
  const request = new IncomingMessage(socket as unknown as Socket);
  request.method = method;
  request.url = target;
  request.httpVersion = "1.1";
  request.headers = { host: "h" };
  request.rawHeaders = ["host", "h"];
  request.complete = true;
  request.push(null);
  const response = new ServerResponse(request);
  return new Promise((resolve) => {
    response.end = (() => {
      resolve(response.statusCode);
      return response;
    }) as never;
    listener(request, response);
  });
}
