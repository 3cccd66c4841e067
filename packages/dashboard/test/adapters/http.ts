import { type IncomingMessage, request } from "node:http";
import { connect } from "node:net";

export interface Reply {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
}

export interface Ask {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** Browsers send it with each request. */
const asBrowsers = { Connection: "keep-alive" };

/** Sends a request whose Host can be chosen, which `fetch` does not allow. */
export function ask(port: number, path: string, { method = "GET", headers = {}, body }: Ask = {}): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path, method, headers: { ...asBrowsers, ...headers }, agent: false }, (message) => {
      let text = "";
      message.setEncoding("utf8");
      message.on("data", (chunk) => (text += chunk));
      message.on("end", () => resolve({ status: message.statusCode ?? 0, headers: message.headers, text }));
      message.on("error", reject);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

/** Sends lines over a socket, and answers the first line of the reply. */
export function askRaw(port: number, lines: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(`${lines.join("\r\n")}\r\n\r\n`));
    let text = "";
    socket.setEncoding("utf8");
    socket.on("data", (chunk) => {
      text += chunk;
      if (!text.includes("\r\n")) return;
      resolve(text.slice(0, text.indexOf("\r\n")));
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

export interface EventStream {
  readonly message: IncomingMessage;
  /** Resolves with the data of the next event. */
  next(): Promise<unknown>;
  /** Resolves when the server has ended the stream. */
  readonly ended: Promise<void>;
  close(): void;
}

/** Opens a stream of server-sent events. */
export function openEvents(port: number, path: string, headers: Record<string, string> = {}): Promise<EventStream> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path, headers: { ...asBrowsers, ...headers }, agent: false }, (message) => {
      const events: unknown[] = [];
      const waiting: ((event: unknown) => void)[] = [];
      let text = "";
      message.setEncoding("utf8");
      message.on("data", (chunk: string) => {
        text += chunk;
        const blocks = text.split("\n\n");
        text = blocks.pop() ?? "";
        for (const block of blocks) {
          const data = /^data: (.*)$/m.exec(block)?.[1];
          if (data === undefined) continue;
          const event: unknown = JSON.parse(data);
          const first = waiting.shift();
          if (first === undefined) events.push(event);
          else first(event);
        }
      });
      message.on("error", () => undefined);
      resolve({
        message,
        next: () => (events.length > 0 ? Promise.resolve(events.shift()) : new Promise((told) => waiting.push(told))),
        ended: new Promise((done) => message.once("end", done)),
        close: () => sent.destroy(),
      });
    });
    sent.on("error", reject);
    sent.end();
  });
}

/** Sends a request and reads no answer. Call the function that it returns to disconnect. */
export function leave(port: number, path: string): () => Promise<void> {
  const socket = connect(port, "127.0.0.1", () => socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`));
  socket.on("error", () => undefined);
  return () =>
    new Promise((resolve) => {
      socket.once("close", () => resolve());
      socket.destroy();
    });
}
