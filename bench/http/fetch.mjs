import { rateLimit } from "@floodgate/fetch";
import { toNodeHandler } from "srvx/node";
import { answer, listenerOf, rejection, twoHeaders } from "./common.mjs";

const noop = (handler) => async (request) => {
  const response = await handler(request);
  for (const name in twoHeaders) response.headers.set(name, twoHeaders[name]);
  return response;
};

const rejectingNoop = () => async () => new Response(rejection.body, { status: 429, headers: rejection.headers });

export const listener = listenerOf({ noop, rejectingNoop, rateLimit }, (limit) => {
  const handler = () => Response.json(answer);
  return toNodeHandler(limit === undefined ? handler : limit(handler));
});
