import { once } from "node:events";
import { calendarWindow, concurrency, rateLimit, tokenBucket } from "@floodgate/express";
import { createParser } from "eventsource-parser";
import express from "express";
import { noteUsage } from "./usage.mjs";

/** In millionths of a dollar for a token. */
const price = { input: 3, output: 15 };

/** All limits of a request are checked in one step: one that rejects it takes nothing of the others. */
function limits({ store, onEvent }) {
  // As `cost` before the request, and as `settle` after it.
  const usage = (req, ended) => (ended ? req.usage : req.estimate);
  const estimated = { hold: "10m", refundWhen: "4xx,5xx" };
  return rateLimit({
    store,
    // A model takes seconds. So each request may wait for the store, and is counted.
    timeoutMs: 10_000,
    onEvent,
    key: "tenant",
    keys: { tenant: (req) => req.tenant.id },
    costs: {
      tokens: async (req, ended) => Math.max(1, (await usage(req, ended)).input + (await usage(req, ended)).output),
      dollars: async (req, ended) => {
        const { input, output } = await usage(req, ended);
        return Math.max(1, input * price.input + output * price.output);
      },
    },
    rules: [
      { name: "requests", policy: tokenBucket({ capacity: 60, refill: 60, every: "1m" }) },
      { name: "streams", policy: concurrency({ limit: 5, hold: "30s" }) },
      {
        name: "tokens",
        policy: tokenBucket({ capacity: 100_000, refill: 100_000, every: "1m" }),
        cost: "tokens",
        settle: "tokens",
        ...estimated,
      },
      {
        name: "budget",
        policy: ({ tenant }) => calendarWindow({ limit: tenant.dollars * 1e6, per: "month", timeZone: tenant.zone }),
        cost: "dollars",
        settle: "dollars",
        headers: false,
        ...estimated,
      },
    ],
  });
}

/** @param tenants by API key: `{ id, zone, dollars }`. */
export function createApp({ upstream, tenants, store, onEvent }) {
  const app = express();
  app.use(express.json({ limit: "1mb" }));
  app.use((req, res, next) => {
    req.tenant = tenants.get(req.get("authorization")?.replace(/^Bearer /, ""));
    if (req.tenant === undefined) return res.status(401).json({ error: "Send an API key." });
    const { messages, max_tokens: output = 1000 } = req.body ?? {};
    const isValid = Array.isArray(messages) && Number.isSafeInteger(output) && output > 0 && output <= 10_000;
    if (!isValid) return res.status(400).json({ error: "Send messages, and max_tokens up to 10000." });
    req.estimate = { input: Math.ceil(JSON.stringify(messages).length / 4), output };
    next();
  });
  app.use(limits({ store, onEvent }));
  app.post(["/v1/chat/completions", "/v1/messages"], (req, res) => {
    req.usage = relay(upstream, req, res);
  });
  return app;
}

/** Passes a stream on. Answers its usage, as far as it came, whoever hangs up first. */
async function relay(upstream, req, res) {
  const usage = { input: req.estimate.input, output: 0 };
  const left = new AbortController();
  const { signal } = left;
  res.once("close", () => left.abort());
  const body = { ...req.body, max_tokens: req.estimate.output, stream: true };
  if (req.path === "/v1/chat/completions") body.stream_options = { include_usage: true };
  try {
    const headers = { "content-type": "application/json" }; // and your own API key
    const answer = await fetch(`${upstream}${req.path}`, { method: "POST", headers, body: JSON.stringify(body), signal });
    if (!answer.ok) throw new Error(`The upstream answers ${answer.status}.`);
    res.writeHead(200, { "content-type": "text/event-stream" });
    const decoder = new TextDecoder();
    const parser = createParser({ onEvent: ({ data }) => noteUsage(usage, data) });
    for await (const chunk of answer.body) {
      parser.feed(decoder.decode(chunk, { stream: true }));
      if (!res.write(chunk)) await once(res, "drain", { signal });
    }
    res.end();
  } catch (error) {
    if (res.headersSent) res.destroy();
    else res.status(502).json({ error: error.message });
  }
  return usage;
}
