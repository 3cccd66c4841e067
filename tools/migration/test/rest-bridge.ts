import { createServer, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { Redis } from "ioredis";
import { listen } from "../../../test/listen.js";

/** Upstash's REST protocol in front of a redis-server: `POST /` takes a command, `POST /pipeline` several. */
export async function startBridge(redisUrl: string): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const redis = new Redis(redisUrl);
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await text(request));
    const isBase64 = request.headers["upstash-encoding"] === "base64";
    const reply = pathOf(request) === "/pipeline" ? await Promise.all(body.map(answer)) : await answer(body);
    response.writeHead(Array.isArray(reply) || reply.error === undefined ? 200 : 400, { "content-type": "application/json" });
    response.end(JSON.stringify(isBase64 ? encoded(reply) : reply));
  });

  async function answer([command, ...args]: [string, ...string[]]): Promise<{ result?: unknown; error?: string }> {
    try {
      // Its scripts begin with a flag that only Upstash knows. Without it they have another digest.
      if (/^evalsha/i.test(command)) return { error: "NOSCRIPT No matching script." };
      const [script, ...others] = args;
      const known = /^eval/i.test(command) ? [script?.replace(/^\s*#!lua[^\n]*\n/, "") ?? "", ...others] : args;
      return { result: await redis.call(command, ...known) };
    } catch (error) {
      return { error: (error as Error).message };
    }
  }

  return {
    url: `http://127.0.0.1:${await listen(server)}`,
    stop: async () => {
      redis.disconnect();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function pathOf({ url = "/" }: IncomingMessage): string {
  return url.split("?")[0] ?? "/";
}

/** All texts of a reply as base64, except errors. */
function encoded(value: unknown): unknown {
  if (typeof value === "string") return value === "OK" ? value : Buffer.from(value).toString("base64");
  if (Array.isArray(value)) return value.map(encoded);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, name === "error" ? inner : encoded(inner)]));
}
