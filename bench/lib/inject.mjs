import { IncomingMessage, ServerResponse } from "node:http";

const nothing = () => undefined;

/** The used part of a connection. */
const connection = (remoteAddress) => ({
  remoteAddress,
  writable: true,
  on: nothing,
  once: nothing,
  removeListener: nothing,
  destroy: nothing,
});

/**
 * Gives a request to a handler of Node's server, without a network and without a parser: what is measured is the framework and what stands in
 * front of it. A library that injects requests costs more than most frameworks.
 * @returns a function that gives one request, and answers the status of its response.
 */
export function injector(handle, { method = "GET", url = "/", headers, remoteAddress = "127.0.0.1" }) {
  const socket = connection(remoteAddress);
  return () =>
    new Promise((resolve) => {
      const request = new IncomingMessage(socket);
      Object.assign(request, { method, url, httpVersion: "1.1", httpVersionMajor: 1, httpVersionMinor: 1, complete: true });
      request.headers = { ...headers };
      const response = new ServerResponse(request);
      const { end } = response;
      response.end = (...parts) => {
        end.apply(response, parts);
        resolve(response.statusCode);
        return response;
      };
      handle(request, response);
    });
}

/**
 * For processes that inject requests. V8 may find by chance that some objects of a request live long, and then allocates all of them among
 * the old objects: such a process needs three times the CPU time, whatever it measures.
 */
export const steadyAllocation = ["--no-allocation-site-pretenuring"];
