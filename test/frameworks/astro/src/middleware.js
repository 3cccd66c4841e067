import { rateLimit } from "@floodgate/fetch";

// `context.clientAddress` is the left-most forwarded address, which anyone can forge.
const limit = rateLimit({ limit: 2, window: "365d", clientIp: { trustedHops: 1 } });

export async function onRequest(context, next) {
  const checked = await limit.check(context.request, { route: context.routePattern });
  return checked.response ?? checked.finish(await next());
}
