import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { Redis } from "ioredis";

/**
 * A server that speaks Upstash's REST API over a real Redis: a command is a JSON list, its answer `{ result }` or `{ error }`.
 * @param before is awaited before a command runs.
 */
export async function startRestServer(
  redisPort: number,
  token: string,
  before: (command: readonly string[]) => unknown = () => undefined,
): Promise<{ url: string; stop(): Promise<void> }> {
  const redis = new Redis(redisPort, "127.0.0.1");
  const server = createServer(async (request, response) => {
    const answer = (status: number, body: object): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    if (request.headers.authorization !== `Bearer ${token}`) return answer(401, { error: "WRONGPASS invalid or missing auth token" });
    try {
      const [command, ...args] = JSON.parse(await text(request));
      await before([command, ...args]);
      answer(200, { result: await redis.call(command, args) });
    } catch (error) {
      answer(400, { error: (error as Error).message });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await redis.quit();
    },
  };
}
