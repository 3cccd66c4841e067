/** The common part of all frameworks' servers. */
export const windowMs = 3_600_000;
export const neverReached = 1e9;

/** Our options, the same in every framework. */
export const ours = {
  allowed: { limit: neverReached, window: "1h" },
  denied: { limit: 1, window: "1h" },
};

/** The hourly limit of a peer. */
export const peerLimits = { "peer allowed": neverReached, "peer denied": 1 };

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

export const answer = { hello: "world" };
