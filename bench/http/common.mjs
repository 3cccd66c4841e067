/** The common part of all frameworks' servers. */
export const windowMs = 3_600_000;
/** A limit that no benchmark reaches. */
export const neverReached = 1e9;

/** The no-op sets our two headers, because every limiter with headers has that cost. */
export const twoHeaders = {
  "RateLimit-Policy": '"default";q=1000000000;w=3600',
  RateLimit: '"default";r=999999999;t=3600',
};

/** The no-op for rejections sends our headers and body. */
export const rejection = {
  headers: {
    "RateLimit-Policy": '"default";q=1;w=3600',
    RateLimit: '"default";r=0;t=3600',
    "Retry-After": "3600",
    "Cache-Control": "no-store",
    "Content-Type": "application/problem+json",
  },
  body: '{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota exceeded","status":429,"detail":"Try again in 3600 seconds.","violated-policies":["default"],"retry-after":3600}',
};

/** The no-ops of frameworks that hand out Node's request and response. */
export const nodeNoops = {
  noop(_req, res, next) {
    for (const name in twoHeaders) res.setHeader(name, twoHeaders[name]);
    next();
  },
  rejectingNoop(_req, res) {
    res.statusCode = 429;
    for (const name in rejection.headers) res.setHeader(name, rejection.headers[name]);
    res.end(rejection.body);
  },
};

/**
 * The function that makes a server's listener for a kind of limit.
 * @param appOf makes it of what stands in front of the route; undefined: nothing. `peer` makes the other library's middleware.
 */
export function listenerOf({ noop, rejectingNoop, rateLimit, peer }, appOf) {
  const limits = {
    nothing: () => undefined,
    noop: () => noop,
    "noop denied": () => rejectingNoop,
    allowed: () => rateLimit({ limit: neverReached, window: "1h" }),
    denied: () => rateLimit({ limit: 1, window: "1h" }),
    "peer allowed": () => peer(neverReached),
    "peer denied": () => peer(1),
  };
  return (kind) => appOf(limits[kind]());
}

export const answer = { hello: "world" };
