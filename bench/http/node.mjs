import { rateLimit } from "@floodgate/node";
import { answer, middlewaresOf, nodeNoops } from "./common.mjs";

const middlewares = middlewaresOf({ ...nodeNoops, rateLimit });

export function listener(kind) {
  const limit = middlewares[kind]() ?? ((_req, _res, next) => next());
  return (req, res) =>
    limit(req, res, () => {
      res.setHeader("Content-Type", "application/json");
      res.end(JSON.stringify(answer));
    });
}
