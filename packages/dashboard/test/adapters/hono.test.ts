import { Hono } from "hono";
import { expect, it } from "vitest";
import { dashboard } from "../../src/hono.js";

// Those of Azure Functions.
it("requests without a signal are answered", async () => {
  const own = dashboard({ authorize: () => true });
  const request = Object.defineProperty(new Request("http://h/f"), "signal", { value: undefined });
  const { status } = await new Hono().route("/f", own).fetch(request);
  own.close();
  expect(status).toBe(200);
});
