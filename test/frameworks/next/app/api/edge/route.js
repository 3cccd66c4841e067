import { decisionOf, rateLimit } from "@floodgate/fetch";

export const runtime = "edge";

const limit = rateLimit({ name: "edge", limit: 2, window: "365d", clientIp: { trustedHops: 1 } });

export const GET = limit((request) => Response.json({ remaining: decisionOf(request)?.remaining }));
