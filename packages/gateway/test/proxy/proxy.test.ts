import { describe, expect, it } from "vitest";
import { ask, startGateway, startUpstream } from "./support.js";

describe("the reverse proxy", () => {
  it("passes a request on, and its response back", async () => {
    const upstream = await startUpstream(async (request, response) => {
      const chunks = await request.toArray();
      response.writeHead(
        201,
        "Made",
        [
          ["X-One", "1"],
          ["Set-Cookie", "a=1"],
          ["Set-Cookie", "b=2"],
        ].flat(),
      );
      response.end(`${request.method} ${request.url} ${Buffer.concat(chunks)}`);
    });
    const { url } = await startGateway(upstream.port);
    const answer = await ask(`${url}/a%2Fb?c=%20`, { method: "POST", body: "hello" });
    expect(answer).toMatchObject({ status: 201, body: "POST /a%2Fb?c=%20 hello", headers: { "x-one": "1", "set-cookie": ["a=1", "b=2"] } });
    expect(answer.headers["ratelimit"]).toMatch(/^"all";r=999999;t=\d+$/);
  });
});
