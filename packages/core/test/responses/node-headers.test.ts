import { describe, expect, it } from "vitest";
import { nodeHeader, setHeaders } from "../../src/adapter.js";

function response(sent = false) {
  const headers = new Map<string, string>();
  return {
    headers,
    headersSent: sent,
    getHeader: (name: string) => headers.get(name.toLowerCase()),
    setHeader: (name: string, value: string) => headers.set(name.toLowerCase(), value),
  };
}

describe("setHeaders", () => {
  it("adds the items of a list to those before, and replaces other values", () => {
    const target = response();
    setHeaders(target, [
      { name: "RateLimit", value: '"a";r=1', list: "ratelimit" },
      { name: "Retry-After", value: "1" },
    ]);
    setHeaders(target, [
      { name: "RateLimit", value: '"b";r=2', list: "ratelimit" },
      { name: "Retry-After", value: "2" },
    ]);
    expect([...target.headers]).toEqual([
      ["ratelimit", '"a";r=1, "b";r=2'],
      ["retry-after", "2"],
    ]);
  });

  it("changes nothing once the headers are sent", () => {
    const target = response(true);
    setHeaders(target, [{ name: "RateLimit", value: '"a";r=1', list: "ratelimit" }]);
    expect(target.headers.size).toBe(0);
  });
});

describe("nodeHeader", () => {
  it("joins a header that was sent several times", () => {
    expect(nodeHeader({ headers: { via: ["a", "b"] } }, "via")).toBe("a, b");
  });

  it("finds only what was sent, not what every object inherits", () => {
    expect(nodeHeader({ headers: {} }, "constructor")).toBeUndefined();
    expect(nodeHeader({ headers: { host: "example.com" } }, "host")).toBe("example.com");
  });
});
