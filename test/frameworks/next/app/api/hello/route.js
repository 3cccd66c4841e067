import { decisionOf, rateLimit } from "@floodgate/fetch";

const limit = rateLimit({ name: "route", limit: 2, window: "365d", clientIp: { trustedHops: 1 } });

export const GET = limit((request) => Response.json({ remaining: decisionOf(request)?.remaining }));
