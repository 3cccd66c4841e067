// A Worker that limits in Redis over HTTP, as an app does: its client and its limiters live as long as its isolate.
import { env, waitUntil } from "cloudflare:workers";
import { consumeAll, createLimiter } from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";
import { Redis } from "@upstash/redis/cloudflare";
import { redisStore } from "../src/index.js";

const client = Redis.fromEnv(env);
const made = new Map();
const once = (id, make) => made.get(id) ?? made.set(id, make()).get(id);
const fallback = memoryStore();
const usual = redisStore(client);

function limiterOf({ limit, options, timeoutMs = 60_000, fallsBack = false }) {
  const store = options ? once(JSON.stringify(options), () => redisStore(client, options)) : usual;
  return once(JSON.stringify([limit, options, timeoutMs]), () =>
    createLimiter({ ...limit, store, timeoutMs, onStoreError: fallsBack ? fallback : "deny" }),
  );
}

const calls = {
  consume: (question) => limiterOf(question).consume(question.key),
  both: ({ questions }) => consumeAll(questions.map((question) => ({ limiter: limiterOf(question), key: question.key }))),
  reset: async (question) => (await limiterOf(question).reset(question.key)) ?? null,
  /** Ends its request before the decision, maybe after the command was sent. */
  async abandon(question) {
    void limiterOf(question).consume(question.key);
    await new Promise((resolve) => setTimeout(resolve, question.afterMs ?? 0));
    return null;
  },
  /** Gives back after its response. */
  async refundLater(question) {
    const limiter = limiterOf(question);
    const decision = await limiter.consume(question.key);
    waitUntil(limiter.refund(question.key, decision));
    return decision;
  },
};

export default {
  async fetch(request) {
    const call = new URL(request.url).pathname.slice(1);
    return Response.json(await calls[call](await request.json()));
  },
};
