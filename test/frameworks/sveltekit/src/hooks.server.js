import { rateLimit } from "@floodgate/fetch";

const limit = rateLimit({ limit: 2, window: "365d" });

export async function handle({ event, resolve }) {
  if (event.isSubRequest) return resolve(event);
  const checked = await limit.check(event.request, { ip: event.getClientAddress(), route: event.route.id ?? undefined });
  return checked.response ?? checked.finish(await resolve(event));
}
