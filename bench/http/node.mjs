import { rateLimit } from "@floodgate/node";
import { answer, middlewaresOf, rejection, twoHeaders } from "./common.mjs";

function noop(_req, res, next) {
  for (const name in twoHeaders) res.setHeader(name, twoHeaders[name]);
  next();
}

function rejectingNoop(_req, res) {
  res.statusCode = 429;
  for (const name in rejection.headers) res.setHeader(name, rejection.headers[name]);
  res.end(rejection.body);
}

const middlewares = middlewaresOf({ noop, rejectingNoop, rateLimit });

export function listener(kind) {
  const limit = middlewares[kind]() ?? ((_req, _res, next) => next());
  return (req, res) =>
    limit(req, res, () => {
      res.setHeader("Content-Type", "application/json");
      res.end(JSON.stringify(answer));
    });
}
