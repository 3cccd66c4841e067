import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { Agent, type IncomingHttpHeaders, request } from "node:http";
import { join } from "node:path";
import type { Decision } from "@floodgate/core";

/** An event that a worker sends. */
export interface AppEvent {
  readonly event: "listening" | "reloaded" | "refused" | "store-error";
  readonly port?: number;
  readonly version?: string;
  readonly message?: string;
}

export interface ClientResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

export interface Asked {
  readonly method?: string;
  readonly path?: string;
  readonly user?: string;
  readonly plan?: string;
  readonly ip?: string;
}

/** An app with live rules in a process of its own: see worker.mjs. */
export class App {
  readonly events: AppEvent[] = [];
  readonly #child: ChildProcess;
  readonly #port: number;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 50 });
  #questions = 0;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.#port = port;
    child.on("message", (message) => {
      if ((message as AppEvent).event !== undefined) this.events.push(message as AppEvent);
    });
  }

  static async start(rulesAt: string, countsAt: string, prefix: string): Promise<App> {
    const child = fork(join(__dirname, "worker.mjs"), [rulesAt, countsAt, prefix], { execArgv: [] });
    const ended = once(child, "exit").then(([code]) => {
      throw new Error(`The app exited with code ${code}`);
    });
    const [{ port }] = (await Promise.race([once(child, "message"), ended])) as [{ port: number }];
    return new App(child, port);
  }

  setTime(nowMs: number): Promise<void> {
    return this.#ask({ ask: "time", nowMs });
  }

  peek(rule: string, key: string): Promise<Decision> {
    return this.#ask({ ask: "peek", rule, key });
  }

  consume(rule: string, key: string, cost: number): Promise<Decision> {
    return this.#ask({ ask: "consume", rule, key, cost });
  }

  /** Waits for the next event. */
  async next(): Promise<AppEvent> {
    for (;;) {
      const [message] = (await once(this.#child, "message")) as [AppEvent];
      if (message.event !== undefined) return message;
    }
  }

  /** Sends a request, on one of at most fifty keep-alive connections. */
  async send({ method = "GET", path = "/", user, plan, ip = "192.0.2.1" }: Asked): Promise<ClientResponse> {
    const headers: Record<string, string> = { "x-forwarded-for": ip };
    if (user !== undefined) headers["x-user"] = user;
    if (plan !== undefined) headers["x-plan"] = plan;
    const sent = request({ host: "127.0.0.1", port: this.#port, method, path, headers, agent: this.#agent });
    sent.end();
    const [response] = await once(sent, "response");
    response.resume();
    await once(response, "end");
    return { status: response.statusCode, headers: response.headers };
  }

  async stop(): Promise<void> {
    this.#agent.destroy();
    const exited = once(this.#child, "exit");
    this.#child.disconnect();
    await exited;
  }

  async #ask<T>(question: object): Promise<T> {
    const id = this.#questions++;
    this.#child.send({ ...question, id });
    for (;;) {
      const [message] = (await once(this.#child, "message")) as [{ answer?: number; value: T }];
      if (message.answer === id) return message.value;
    }
  }
}
