import { Agent, type IncomingHttpHeaders, type RequestOptions, request } from "node:http";
import { text } from "node:stream/consumers";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A request without a response for this long hangs. */
const longestMs = 5000;

/** Sends requests. */
export class Browser {
  readonly #agent = new Agent({ keepAlive: true });

  /** Sends a client's request. */
  get(port: number, client: string, patienceMs?: number): Promise<Answer | string> {
    return this.send({ port, headers: { "x-client": client } }, patienceMs);
  }

  /** The response, or what went wrong: the connection broke, or the request hung. */
  send(options: RequestOptions & { port: number }, patienceMs: number = longestMs): Promise<Answer | string> {
    return new Promise((resolve) => {
      const message = request({ host: "127.0.0.1", agent: this.#agent, ...options });
      message.setTimeout(patienceMs, () => message.destroy(new Error(`no answer in ${patienceMs} ms`)));
      const failed = (error: Error): void => resolve(error.message);
      message.once("error", failed);
      message.once("response", (response) => {
        const { statusCode: status = 0, headers } = response;
        text(response).then((body) => resolve({ status, headers, body }), failed);
      });
      message.end();
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
