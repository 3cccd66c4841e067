import { connect, type Socket } from "node:net";
import { loopback } from "./port.js";
import { decodeReply, encodeCommand, type Reply, ReplyError, type Word } from "./resp.js";

interface Waiting {
  resolve(reply: Reply): void;
  reject(error: Error): void;
}

/** A connection to a port of 127.0.0.1: a small client for tests' own commands. */
export class Connection {
  readonly #socket: Socket;
  readonly #waiting: Waiting[] = [];
  readonly #onUnasked: (reply: Reply) => void;
  #bytes: Buffer = Buffer.alloc(0);

  /** `onUnasked` gets messages that answer no command, such as MONITOR lines. */
  constructor(port: number, onUnasked: (reply: Reply) => void = () => {}) {
    this.#onUnasked = onUnasked;
    this.#socket = connect({ port, host: loopback, noDelay: true });
    let cause: Error | undefined;
    this.#socket.on("data", (chunk) => {
      try {
        this.#read(chunk);
      } catch (error) {
        this.#socket.destroy(error as Error);
      }
    });
    this.#socket.on("error", (error) => {
      cause = error;
    });
    this.#socket.on("close", () => {
      const error = new Error(`The server on port ${port} did not answer before the connection closed.`, { cause });
      for (const { reject } of this.#waiting.splice(0)) reject(error);
    });
  }

  get closed(): boolean {
    return this.#socket.destroyed;
  }

  /**
   * Sends a command, one argument per word.
   * @throws ReplyError if the server replies with an error, Error if it cannot be reached or closes the connection before it replies.
   */
  command(...words: readonly Word[]): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#socket.write(encodeCommand(words));
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk]);
    let at = 0;
    for (let next = decodeReply(this.#bytes, at); next !== undefined; next = decodeReply(this.#bytes, at)) {
      at = next.end;
      const waiting = this.#waiting.shift();
      if (waiting === undefined) this.#onUnasked(next.reply);
      else if (next.reply instanceof ReplyError) waiting.reject(next.reply);
      else waiting.resolve(next.reply);
    }
    this.#bytes = this.#bytes.subarray(at);
  }
}
