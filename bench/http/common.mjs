/** What every framework's servers say alike. */
export const windowMs = 3_600_000;
export const neverReached = 1e9;

/** The options of ours, the same in every framework. */
export const ours = {
  allowed: { limit: neverReached, window: "1h" },
  denied: { limit: 1, window: "1h" },
};

/** The two headers that ours sets, for nothing: what any limiter that answers in headers has to pay. */
export const twoHeaders = {
  "RateLimit-Policy": '"default";q=1000000000;w=3600',
  RateLimit: '"default";r=999999999;t=3600',
};

export const answer = { hello: "world" };
