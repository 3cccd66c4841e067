import type { IncomingMessage, ServerResponse } from "node:http";
import { nodeView, sendReply } from "./adapters/node.js";
import { Dashboard } from "./dashboard.js";
import type { DashboardOptions } from "./options.js";

export type { DashboardOptions } from "./options.js";

/** The used part of a request. It fits Express 4 and 5. */
export interface ExpressDashboardRequest extends IncomingMessage {
  // biome-ignore lint/suspicious/noExplicitAny: only the app knows what its parsers put there
  body?: any;
  // biome-ignore lint/suspicious/noExplicitAny: only the app knows what its authentication puts there
  user?: any;
}

/** Express middleware that answers with the dashboard. */
export interface DashboardMiddleware {
  (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void): void;
  /** Ends all open streams. With the last dashboard of the process, it stops counting too. */
  close(): void;
}

/**
 * Makes Express middleware that shows what Floodgate limits in this process.
 *
 *     app.use("/_floodgate", dashboard({ authorize: (req) => req.user?.admin === true }));
 *
 * Counting starts with this call, in bounded memory.
 * @throws FloodgateError if an option is invalid: when called, not at a request.
 */
export function dashboard<Req extends IncomingMessage = ExpressDashboardRequest>(options: DashboardOptions<Req> = {}): DashboardMiddleware {
  const own = new Dashboard<Req>(options, [], "(req) => req.user?.admin === true");
  const middleware = (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void): void => {
    const { body, url = "" } = request as ExpressDashboardRequest;
    own
      .handle(nodeView(request, url, body), request as Req)
      .then((reply) => {
        if (reply !== undefined) sendReply(request, response, reply);
        else if (!response.headersSent && !response.writableEnded) next();
      })
      .catch(next);
  };
  return Object.assign(middleware, { close: () => own.close() });
}
