import { rateLimit } from "@floodgate/node";
import { fromNodeMiddleware } from "h3";

// Requests that the app sends to itself have no address.
export default fromNodeMiddleware(rateLimit({ limit: 2, window: "365d", skip: (request) => "__unenv__" in request }));
