import { type Context, type Env, Hono } from "hono";
import { answerOf, honoView } from "./adapters/hono.js";
import { Dashboard } from "./dashboard.js";
import type { DashboardOptions } from "./options.js";

export type { DashboardOptions } from "./options.js";

/** A Hono app that answers with the dashboard. */
export type DashboardApp<E extends Env> = Hono<E> & {
  /** Ends all open streams. With the last dashboard of the process, it stops counting too. */
  close(): void;
};

/**
 * Makes a Hono app that shows what Floodgate limits in this process.
 *
 *     app.route("/_floodgate", dashboard({ authorize: (c) => c.get("user")?.admin === true }));
 *
 * Counting starts with this call, in bounded memory. It runs on Node, Bun and Deno.
 * @throws FloodgateError if an option is invalid: when called, not at a request.
 */
// biome-ignore lint/suspicious/noExplicitAny: any environment of an app
export function dashboard<E extends Env = any>(options: DashboardOptions<Context<E>> = {}): DashboardApp<E> {
  const own = new Dashboard<Context<E>>(options, [], '(c) => c.get("user")?.admin === true');
  const app = new Hono<E>();
  app.all("*", async (c, next) => {
    const answer = await own.handle(honoView(c), c);
    return answer === undefined ? next() : answerOf(c, answer);
  });
  return Object.assign(app, { close: () => own.close() });
}
