import { rateLimit } from "@floodgate/fetch";
import { NextResponse } from "next/server";

const limit = rateLimit({ name: "proxy", limit: 8, window: "365d", clientIp: { trustedHops: 1 } });

export const proxy = limit(() => NextResponse.next());
