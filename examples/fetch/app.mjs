import { decisionOf, leakyBucket, rateLimit, slidingWindowLog } from "@floodgate/fetch";

/** A handler of Request and Response with the limits that most apps start with, the same on every runtime. */
export function createApp() {
  // Logins: 3 tries a minute per address and user. Successful ones do not count.
  const login = rateLimit({
    name: "login",
    policy: slidingWindowLog({ limit: 3, window: "1m" }),
    key: async ({ request }, { ip }) => [ip, userOf(await bodyOf(request)) ?? ""],
    refundWhen: (status) => status < 400,
  });

  // Slow work: a queue that releases two requests a second.
  const slow = rateLimit({ name: "slow", policy: leakyBucket({ capacity: 4, leak: 2, every: "1s" }), key: "global" });

  // Everything else: 5 requests in ten seconds per client IP.
  const perIp = rateLimit({ name: "per-ip", limit: 5, window: "10s" });

  const routes = {
    "POST /login": login(async (request) => {
      const body = await bodyOf(request);
      if (userOf(body) === undefined) return Response.json({ error: "Send JSON with a user and a password." }, { status: 400 });
      const ok = body.password === "open sesame";
      return Response.json({ ok }, { status: ok ? 200 : 401 });
    }),
    "GET /slow": slow(() => Response.json({ done: true })),
    "GET /": perIp((request) => Response.json({ hello: "world", remaining: decisionOf(request).remaining })),
  };
  const unknown = perIp(() => Response.json({ error: "There is no such page." }, { status: 404 }));

  /** The runtime passes more than the request: that is where a limit finds the client's address. */
  const fetch = (request, ...more) => (routes[`${request.method} ${new URL(request.url).pathname}`] ?? unknown)(request, ...more);
  return { fetch };
}

/** The JSON of a request; undefined if it is not JSON. A copy is read, because a body can be read once. */
function bodyOf(request) {
  return request
    .clone()
    .json()
    .catch(() => undefined);
}

/** The user that a body names. A client may send anything in its place, so only a string is taken. */
function userOf(body) {
  return typeof body?.user === "string" ? body.user : undefined;
}
