import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { type Decision, fixedWindow } from "@floodgate/core";
import { isPromise } from "@floodgate/core/adapter";
import { memoryStore } from "@floodgate/store-memory";
import type Koa from "koa";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { rateLimit } from "../src/index.js";
import { versions } from "./serving.js";

// The clock stands still, so that no window ends within a test.
beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => void vi.useRealTimers());

const policy = fixedWindow({ limit: 1, window: "1d" });

describe.each(versions)("with synchronous functions, in %s", (_, koa) => {
  const app = new koa();
  const context = (): Koa.Context => {
    const request = Object.assign(new IncomingMessage(new Socket()), { method: "GET", url: "/" });
    return app.createContext(request, new ServerResponse(request)) as Koa.Context;
  };
  const passed = Promise.resolve("passed");
  const next = (): Promise<string> => passed;

  it("the middleware returns next's result, and a rejection is complete when it returns", () => {
    const limit = rateLimit({ policy, key: () => "k", cost: () => 1, skip: () => false });
    const [first, second] = [context(), context()];
    expect(limit(first, next)).toBe(passed);
    expect(first.state["rateLimit"]).toMatchObject({ allowed: true, remaining: 0 });
    expect(limit(second, next)).toBeUndefined();
    expect(second.state["rateLimit"]).toMatchObject({ allowed: false });
    expect([second.status, second.type, JSON.parse(second.body as string).status]).toEqual([429, "application/problem+json", 429]);
    expect(second.response.get("Retry-After")).toMatch(/^\d+$/);
  });

  it("an error in a function is thrown before any header is set", () => {
    const fault = new Error("key");
    const limit = rateLimit({
      policy,
      key: () => {
        throw fault;
      },
    });
    const ctx = context();
    expect(() => limit(ctx, next)).toThrow(fault);
    expect([ctx.state, ctx.response.headers]).toEqual([{}, {}]);
  });

  it("a request that passes a middleware twice continues at once with its first decision", () => {
    const limit = rateLimit({ policy, key: () => "k", decisionName: "quota" });
    const ctx = context();
    limit(ctx, next);
    const decision: unknown = ctx.state["quota"];
    expect(limit(ctx, next)).toBe(passed);
    expect(ctx.state["quota"]).toBe(decision);
  });
});

it("a limiter on the memory store returns plain values", () => {
  const { limiter } = rateLimit({ policy, store: memoryStore() });
  const decision = limiter.consume("k");
  expect(isPromise(decision)).toBe(false);
  expect((decision as Decision).allowed).toBe(true);
});
