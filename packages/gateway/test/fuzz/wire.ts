import { connect } from "node:net";
import { Random } from "../../../../tools/faults/test/routing/random.js";

export { Random };

/** `FLOODGATE_SEED` repeats a run. */
export const seed = Number(process.env["FLOODGATE_SEED"] ?? Date.now() % 2 ** 31);

/** An answer as it was read: all of it, or what there was when the connection closed. */
export interface ReadAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
  readonly isWhole: boolean;
}

const statusLine = /^HTTP\/1\.[01] ([1-9]\d\d) ([\t\x20-\x7e\x80-\xff]*)$/;
const headerLine = /^([!#$%&'*+.^_`|~\w-]+):[\t ]*([\t\x20-\x7e\x80-\xff]*)$/;

/**
 * Reads what a server has sent, as strictly as RFC 9112.
 * @param methods of the requests, in turn. More answers than methods are a fault.
 * @param isClosed whether no more bytes come.
 * @throws Error that says what is not well formed.
 */
export function readAnswers(text: string, methods: readonly string[], isClosed: boolean): ReadAnswer[] {
  const answers: ReadAnswer[] = [];
  let at = 0;
  const linesUntilEmpty = (): string[] | undefined => {
    const end = text.startsWith("\r\n", at) ? at - 2 : text.indexOf("\r\n\r\n", at);
    if (end === -1) return undefined;
    const lines = text.slice(at, Math.max(at, end)).split("\r\n");
    at = end + 4;
    return lines.length === 1 && lines[0] === "" ? [] : lines;
  };
  const headersOf = (lines: readonly string[]): Map<string, string> => {
    const headers = new Map<string, string>();
    for (const line of lines) {
      const [, name = "", value = ""] = headerLine.exec(line) ?? [];
      if (name === "") throw new Error(`a header line is not well formed: ${JSON.stringify(line)}`);
      const lower = name.toLowerCase();
      if (headers.has(lower) && /^(?:content-length|transfer-encoding)$/.test(lower)) throw new Error(`${name} is there twice`);
      headers.set(lower, value);
    }
    return headers;
  };
  while (at < text.length) {
    const method = methods[answers.length];
    if (method === undefined) throw new Error(`more bytes than answers: ${JSON.stringify(text.slice(at, at + 200))}`);
    const head = linesUntilEmpty();
    const first = head?.[0] ?? text.slice(at, text.indexOf("\r\n", at) === -1 ? at : text.indexOf("\r\n", at));
    const status = Number(statusLine.exec(first)?.[1]);
    if (head === undefined) {
      if (first !== "" && Number.isNaN(status)) throw new Error(`the status line is not well formed: ${JSON.stringify(first)}`);
      return answers;
    }
    if (Number.isNaN(status)) throw new Error(`the status line is not well formed: ${JSON.stringify(first)}`);
    const headers = headersOf(head.slice(1));
    if (status === 101) {
      answers.push({ status, headers, body: text.slice(at), isWhole: true });
      return answers;
    }
    if (status < 200) continue;
    const length = headers.get("content-length");
    const isChunked = headers.has("transfer-encoding");
    let body = "";
    let isWhole = true;
    if (length !== undefined && isChunked) throw new Error("an answer has a length and chunks");
    if (method === "HEAD" || status === 204 || status === 304) {
      if (status === 204 && (length !== undefined || isChunked)) throw new Error("204 with a body");
    } else if (isChunked) {
      if (headers.get("transfer-encoding") !== "chunked") throw new Error("another coding than chunked");
      isWhole = false;
      while (!isWhole) {
        const end = text.indexOf("\r\n", at);
        if (end === -1) break;
        const size = text.slice(at, end);
        if (!/^[\da-f]+$/i.test(size)) throw new Error(`not the size of a chunk: ${JSON.stringify(size)}`);
        const bytes = Number.parseInt(size, 16);
        if (bytes === 0) {
          at = end + 2;
          const trailers = linesUntilEmpty();
          if (trailers === undefined) break;
          headersOf(trailers);
          isWhole = true;
        } else {
          if (text.length < end + 2 + bytes + 2) break;
          body += text.slice(end + 2, end + 2 + bytes);
          at = end + 2 + bytes + 2;
          if (text.slice(at - 2, at) !== "\r\n") throw new Error("a chunk does not end where its size says");
        }
      }
    } else if (length !== undefined) {
      if (!/^\d+$/.test(length)) throw new Error(`not a length: ${length}`);
      body = text.slice(at, at + Number(length));
      isWhole = body.length === Number(length);
      at += body.length;
    } else {
      if (first.startsWith("HTTP/1.1") && !/close/i.test(headers.get("connection") ?? "")) throw new Error("an answer without an end");
      body = text.slice(at);
      at = text.length;
      isWhole = isClosed;
    }
    answers.push({ status, headers, body, isWhole });
    if (!isWhole) return answers;
  }
  return answers;
}

/** What the other side answered to bytes that were sent as they are. */
export interface Talk {
  readonly answers: readonly ReadAnswer[];
  /** Whether the connection was still open when `longestMs` were over, and an answer was missing. */
  readonly hangs: boolean;
  readonly text: string;
}

/**
 * Sends pieces of bytes on one connection, and reads the answers until all are there or the connection closes.
 * @param methods of the requests that are sent.
 */
export async function talk(
  port: number,
  pieces: readonly string[],
  {
    methods,
    isEnough,
    longestMs,
    quietMs,
  }: {
    methods: readonly string[];
    isEnough(answers: readonly ReadAnswer[]): boolean;
    longestMs: number;
    /** After so long without an answer, this side says that it sends no more. */
    quietMs?: number;
  },
): Promise<Talk> {
  const socket = connect(port, "127.0.0.1");
  socket.setEncoding("latin1");
  socket.on("error", () => {});
  let text = "";
  let hangs = false;
  let fault: unknown;
  await new Promise<void>((done) => {
    const timer = setTimeout(() => {
      hangs = true;
      socket.destroy();
    }, longestMs);
    const quiet = quietMs === undefined ? undefined : setTimeout(() => socket.end(), quietMs);
    const left = [...pieces];
    const sendNext = (): void => {
      const piece = left.shift();
      if (piece === undefined || !socket.writable) return;
      socket.write(piece, "latin1");
      if (left.length > 0) setTimeout(sendNext, 5);
    };
    socket.on("connect", sendNext);
    socket.on("data", (data: string) => {
      quiet?.refresh();
      text += data;
      try {
        const answers = readAnswers(text, methods, false);
        if (answers.every(({ isWhole }) => isWhole) && isEnough(answers)) socket.destroy();
      } catch (error) {
        fault = error;
        socket.destroy();
      }
    });
    socket.on("end", () => socket.destroy());
    socket.on("close", () => {
      clearTimeout(timer);
      clearTimeout(quiet);
      done();
    });
  });
  if (fault !== undefined) throw new Error(`${fault} in ${JSON.stringify(text.slice(0, 2000))}`);
  return { answers: readAnswers(text, methods, true), hangs, text };
}

const wedges = [
  "\r\n",
  "\n",
  "\r",
  "\0",
  "\x01",
  " ",
  ":",
  ",",
  "\xff",
  "%",
  "/..",
  "\\",
  '"',
  "{",
  "[",
  "0\r\n\r\n",
  "ffffffffffffffff",
  "99999999999999999999",
  "Content-Length: 5\r\n",
  "Transfer-Encoding: chunked\r\n",
  "Connection: close\r\n",
  "Expect: 100-continue\r\n",
  "Upgrade: x\r\n",
  "HTTP/1.1 200 OK\r\n\r\n",
];

/** Changes a few places of a text: bytes are flipped, removed, repeated or put in, or the end is cut off. */
export function mutate(random: Random, text: string): string {
  let changed = text;
  for (let times = 1 + random.below(3); times > 0; times--) {
    const at = random.below(changed.length + 1);
    const end = Math.min(changed.length, at + 1 + random.below(random.oneIn(4) ? 40 : 3));
    const before = changed.slice(0, at);
    const part = changed.slice(at, end);
    const after = changed.slice(end);
    const kind = random.below(6);
    if (kind === 0) changed = before + String.fromCharCode(random.below(256)) + after;
    else if (kind === 1) changed = before + after;
    else if (kind === 2) changed = before + part.repeat(2 + random.below(random.oneIn(20) ? 2000 : 3)) + after;
    else if (kind === 3) changed = before + random.from(wedges) + part + after;
    else if (kind === 4) changed = before + random.from(wedges) + after;
    else if (random.oneIn(4)) changed = before;
  }
  return changed;
}

/** Cuts a text into a few pieces. */
export function inPieces(random: Random, text: string): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length; ) {
    const end = random.oneIn(3) ? at + 1 + random.below(text.length - at) : text.length;
    pieces.push(text.slice(at, end));
    at = end;
  }
  return pieces;
}

/** Collects errors that would have ended the process. */
export function watchDeaths(): { readonly deaths: unknown[]; stop(): void } {
  const deaths: unknown[] = [];
  const die = (error: unknown): void => void deaths.push(error);
  process.on("uncaughtException", die).on("unhandledRejection", die);
  return { deaths, stop: () => void process.off("uncaughtException", die).off("unhandledRejection", die) };
}

/** Runs tasks with numbers below `runs`, a few at a time. */
export async function inParallel(runs: number, width: number, task: (run: number) => Promise<void>): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < runs) await task(next++);
  };
  await Promise.all(Array.from({ length: width }, work));
}
