import type { AddressInfo } from "node:net";
import { fixedWindow } from "@floodgate/core";
import express, { type Request, type Response } from "express";
import { describe, expect, it, vi } from "vitest";
import { rateLimit } from "../src/index.js";
import { listening } from "./express-app.js";

const policy = fixedWindow({ limit: 1, window: "365d" });

describe("onLimited", () => {
  /** The response to a second request, and the console output. */
  async function limited(onLimited: (...args: never[]) => unknown): Promise<[number, string | null, string]> {
    const app = express();
    app.use(
      rateLimit<Request, Response>({ policy, onLimited: onLimited as (request: Request, response: Response) => unknown }),
      (_request, response) => void response.json({ ok: true }),
    );
    const server = await listening(app);
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      await fetch(url);
      const response = await fetch(url);
      return [response.status, response.headers.get("content-type"), await response.text()];
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }

  it.each<[string, (request: Request) => unknown]>([
    ["takes nothing", () => undefined],
    ["takes the request only", (request) => request.ip],
    ["takes the request only, and answers a promise", async (request) => request.ip],
  ])("that %s leaves the answer to the limit, at once", async (_, onLimited) => {
    const [status, type] = await limited(onLimited as (...args: never[]) => unknown);
    expect([status, type]).toEqual([429, "application/problem+json"]);
  });

  it("may respond some time after it has returned", async () => {
    const later = (_request: Request, response: Response) => {
      setTimeout(() => response.send("Slow down"), 20);
    };
    expect(await limited(later as (...args: never[]) => unknown)).toEqual([429, "text/html; charset=utf-8", "Slow down"]);
  });

  it("that takes the response but does not answer warns once, and the limit answers", async () => {
    const warned = vi.spyOn(console, "warn").mockReturnValue();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const forgetful = (_request: Request, _response: Response) => {
        setImmediate(() => vi.advanceTimersByTime(5000));
      };
      for (let i = 0; i < 2; i++) {
        const [status, type] = await limited(forgetful as (...args: never[]) => unknown);
        expect([status, type]).toEqual([429, "application/problem+json"]);
      }
      expect(warned.mock.calls.map(([text]) => text)).toEqual([
        expect.stringMatching(/^\[floodgate\] FLOODGATE_UNANSWERED: `onLimited` has/),
      ]);
    } finally {
      vi.useRealTimers();
      warned.mockRestore();
    }
  });
});

describe("a rejection", () => {
  it("after an earlier middleware has sent headers cuts the connection, and warns once how to mount the limit", async () => {
    const warned = vi.spyOn(console, "warn").mockReturnValue();
    const app = express();
    app.use((_request, response, next) => {
      response.flushHeaders();
      next();
    });
    app.use(rateLimit({ policy }), (_request, response) => void response.end("ok"));
    const server = await listening(app);
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      expect(await (await fetch(url)).text()).toBe("ok");
      for (let i = 0; i < 2; i++) await expect(fetch(url).then((response) => response.text())).rejects.toThrow();
      expect(warned.mock.calls.map(([text]) => text)).toEqual([
        expect.stringMatching(/^\[floodgate\] FLOODGATE_HEADERS_SENT: .* Mount the limit before that middleware\.$/),
      ]);
    } finally {
      server.closeAllConnections();
      server.close();
      warned.mockRestore();
    }
  });
});
