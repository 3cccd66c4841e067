import { startRedis } from "@floodgate/test-servers";
import { times } from "./exchange.js";
import { pageTest } from "./harness.js";

const login = (password: string) => ({ method: "POST", path: "/login", json: { user: "ann", password } });
const ann = { headers: { "x-user": "ann" } };
const bob = { path: "/search", headers: { "x-user": "bob" } };

pageTest("rate-limiter-flexible", undefined, [
  { heading: "A middleware", requests: [...times(5, ann), {}], statuses: [200, 200, 200, 429, 429, 200], isByHand: true },
  {
    heading: "Wrong passwords",
    requests: [login("?"), login("?"), login("secret"), login("?"), login("?"), login("?"), login("?"), login("secret")],
    statuses: [401, 401, 200, 401, 401, 401, 429, 429],
    isByHand: true,
    hidesReplies: true,
    redis: startRedis,
  },
  {
    heading: "A cost, and a block",
    requests: [...times(3, bob), { path: "/search", ...ann }, { method: "POST", path: "/block" }, { path: "/search", ...ann }],
    statuses: [200, 200, 429, 200, 200, 429],
    isByHand: true,
    hidesReplies: true,
  },
]);
