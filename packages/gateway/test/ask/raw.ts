import { connect } from "node:net";
import { text } from "node:stream/consumers";

/** A response as it was written. */
export interface RawResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Sends exact bytes, and reads all responses until the server closes. The last request should say `Connection: close`. */
export async function sendRaw(origin: string, ...parts: readonly (string | Buffer)[]): Promise<RawResponse[]> {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  socket.setEncoding("latin1");
  const answer = text(socket);
  for (const part of parts) socket.write(typeof part === "string" ? Buffer.from(part, "latin1") : part);
  return parseResponses(await answer);
}

function parseResponses(all: string): RawResponse[] {
  const responses: RawResponse[] = [];
  for (let rest = all; rest !== ""; ) {
    const end = rest.indexOf("\r\n\r\n");
    const [statusLine = "", ...lines] = rest.slice(0, end).split("\r\n");
    const headers = Object.fromEntries(
      lines.map((line) => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
      }),
    );
    const length = Number(headers["content-length"] ?? 0);
    responses.push({ status: Number(statusLine.split(" ")[1]), headers, body: rest.slice(end + 4, end + 4 + length) });
    rest = rest.slice(end + 4 + length);
  }
  return responses;
}

/** A request head of lines, ended by an empty one. */
export function head(...lines: readonly string[]): string {
  return `${lines.join("\r\n")}\r\n\r\n`;
}
