import { rateLimit } from "@floodgate/fetch";
import { Outlet } from "react-router";
import { decisionContext } from "./decision.js";

const limit = rateLimit({ limit: 2, window: "365d", clientIp: { trustedHops: 1 } });

export const middleware = [
  async ({ request, context }, next) => {
    const checked = await limit.check(request);
    // Loaders get another request.
    context.set(decisionContext, checked.decision);
    return checked.response ?? checked.finish(await next());
  },
];

export default function Root() {
  return <Outlet />;
}
