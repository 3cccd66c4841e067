import { rateLimit } from "@floodgate/fetch";
import { toNodeHandler } from "srvx/node";
import { answer, middlewaresOf, rejection, twoHeaders } from "./common.mjs";

const noop = (handler) => async (request) => {
  const response = await handler(request);
  for (const name in twoHeaders) response.headers.set(name, twoHeaders[name]);
  return response;
};

const rejectingNoop = () => async () => new Response(rejection.body, { status: 429, headers: rejection.headers });

const middlewares = middlewaresOf({ noop, rejectingNoop, rateLimit });

export function listener(kind) {
  const handler = () => Response.json(answer);
  const limit = middlewares[kind]();
  return toNodeHandler(limit === undefined ? handler : limit(handler));
}
