import { Agent, type IncomingHttpHeaders, type RequestOptions, request } from "node:http";

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
      message.once("error", (error) => resolve(error.message));
      message.once("response", (response) => {
        let body = "";
        response.setEncoding("utf8");
        response.on("data", (chunk) => {
          body += chunk;
        });
        response.once("end", () => resolve({ status: response.statusCode as number, headers: response.headers, body }));
        response.once("error", (error) => resolve(error.message));
      });
      message.end();
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
