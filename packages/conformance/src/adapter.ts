import type { Adapter } from "./adapter/adapter.js";
import { addressCases } from "./adapter/addresses.js";
import { errorCases } from "./adapter/errors.js";
import { decisionCases, functionCases } from "./adapter/functions.js";
import { leavingCases } from "./adapter/leaving.js";
import { mountedCases } from "./adapter/mounted.js";
import { onLimitedCases } from "./adapter/on-limited.js";
import { pathCases } from "./adapter/paths.js";
import { queueCases } from "./adapter/queues.js";
import { refundCases } from "./adapter/refunds.js";
import { responseCases } from "./adapter/responses.js";
import { routeCases } from "./adapter/routes.js";
import { scheduleCases } from "./adapter/schedules.js";
import { severalCases } from "./adapter/several.js";
import { slotCases } from "./adapter/slots.js";
import { warningCases } from "./adapter/warnings.js";
import { type AdapterSuite, Web } from "./adapter/web.js";
import { type LeftOut, type Runner, runGroups } from "./groups.js";

export type { Adapter, Carried, Handler, LimitSetup, ProxySetting, Reply, RequestView, Running, Setup, Step } from "./adapter/adapter.js";
export { andThen, forRequests, madeAnew } from "./adapter/options.js";
export { requestServer } from "./adapter/request-server.js";
export type { LeftOut, Runner } from "./groups.js";

/** The subjects of the suite. */
export type AdapterGroup =
  | "responses"
  | "functions of the app"
  | "decisions"
  | "several middlewares"
  | "routers and sub-apps"
  | "paths"
  | "routes"
  | "addresses"
  | "errors"
  | "onLimited"
  | "refunds"
  | "queues"
  | "disconnecting clients"
  | "random clients"
  | "slots"
  | "warnings";

const groups: Record<AdapterGroup, (suite: AdapterSuite) => void> = {
  responses: responseCases,
  "functions of the app": functionCases,
  decisions: decisionCases,
  "several middlewares": severalCases,
  "routers and sub-apps": mountedCases,
  paths: pathCases,
  routes: routeCases,
  addresses: addressCases,
  errors: errorCases,
  onLimited: onLimitedCases,
  refunds: refundCases,
  queues: queueCases,
  "disconnecting clients": leavingCases,
  "random clients": scheduleCases,
  slots: slotCases,
  warnings: warningCases,
};

export interface AdapterConformanceOptions {
  /** Groups that the adapter cannot pass, each with the reason, which the report prints. */
  readonly leaveOut?: LeftOut<AdapterGroup>;
  /** The part of the random runs to do, above 0, at most 1. Default 1. */
  readonly effort?: number;
}

/**
 * Tests an adapter over real HTTP on loopback. `runner` is any test runner's `describe` and `it`. `adapter` describes one
 * framework: how to build an app from limits and routes, and how to read its requests.
 */
export function adapterConformance(runner: Runner, adapter: Adapter, { leaveOut, effort = 1 }: AdapterConformanceOptions = {}): void {
  const suite: AdapterSuite = {
    adapter,
    effort,
    it(name, body) {
      runner.it(name, async () => {
        const web = new Web(adapter);
        try {
          await body(web);
        } finally {
          await web.end();
        }
      });
    },
  };
  runGroups(runner, adapter.name, groups, suite, leaveOut);
}
