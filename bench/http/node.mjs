import { rateLimit } from "@floodgate/node";
import { answer, listenerOf, nodeNoops } from "./common.mjs";

export const listener = listenerOf(
  { ...nodeNoops, rateLimit },
  (limit = (_req, _res, next) => next()) =>
    (req, res) =>
      limit(req, res, () => {
        res.setHeader("Content-Type", "application/json");
        res.end(JSON.stringify(answer));
      }),
);
