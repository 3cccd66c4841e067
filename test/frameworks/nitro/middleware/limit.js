import { rateLimit } from "@floodgate/fetch";
import { defineMiddleware } from "nitro/deps/h3";

const limit = rateLimit({ limit: 2, window: "365d" });

export default defineMiddleware(async (event, next) => {
  // The app asks itself: such a request has no address.
  if (!event.req.runtime) return next();
  const { response, headers } = await limit.check(event.req);
  for (const [name, value] of headers) event.res.headers.append(name, value);
  return response ?? next();
});
