import type { Adapter } from "./adapter.js";
import { aroundCases } from "./around.js";
import { bodyCases } from "./bodies.js";
import { clientIpCases } from "./client-ip.js";
import { decisionCases } from "./decisions.js";
import { faultCases } from "./faults.js";
import { hookCases } from "./hooks.js";
import { hostileCases } from "./hostile.js";
import { leavingCases } from "./leaving.js";
import { matchCases } from "./match.js";
import { mountedCases } from "./mounted.js";
import { pathCases } from "./paths.js";
import { refundCases } from "./refunds.js";
import { responseCases } from "./responses.js";
import { routeCases } from "./routes.js";
import { scheduleCases } from "./schedules.js";
import { severalCases } from "./several.js";
import { spoofingCases } from "./spoofing.js";
import { waitingCases } from "./waiting.js";
import { warningCases } from "./warnings.js";
import { type AdapterRunner, type AdapterSuite, Web } from "./web.js";
import { wiringCases } from "./wiring.js";

export type { Adapter, Carried, Handler, LimitSetup, ProxySetting, Reply, RequestView, Running, Setup, Step } from "./adapter.js";
export { andThen, forRequests, madeAnew } from "./options.js";
export type { AdapterRunner } from "./web.js";

/**
 * Tests an adapter over real HTTP on loopback. `runner` is any test runner's `describe` and `it`. `adapter` describes one
 * framework: how to build an app from limits and routes, and how to read its requests.
 */
export function adapterConformance(runner: AdapterRunner, adapter: Adapter): void {
  const suite: AdapterSuite = {
    adapter,
    describe: (name, body) => void runner.describe(name, body),
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
  runner.describe(adapter.name, () => {
    responseCases(suite);
    aroundCases(suite);
    wiringCases(suite);
    severalCases(suite);
    mountedCases(suite);
    matchCases(suite);
    pathCases(suite);
    routeCases(suite);
    clientIpCases(suite);
    spoofingCases(suite);
    decisionCases(suite);
    bodyCases(suite);
    hookCases(suite);
    refundCases(suite);
    waitingCases(suite);
    leavingCases(suite);
    scheduleCases(suite);
    faultCases(suite);
    warningCases(suite);
    hostileCases(suite);
  });
}
