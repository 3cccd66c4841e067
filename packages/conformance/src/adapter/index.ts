import type { Adapter } from "./adapter.js";
import { aroundCases } from "./around.js";
import { banCases } from "./bans.js";
import { blockCases } from "./blocks.js";
import { bodyCases } from "./bodies.js";
import { clientIpCases } from "./client-ip.js";
import { decisionCases } from "./decisions.js";
import { exemptCases } from "./exempt.js";
import { faultCases } from "./faults.js";
import { functionCases } from "./functions.js";
import { headerCases } from "./headers.js";
import { hookCases } from "./hooks.js";
import { hostileCases } from "./hostile.js";
import { keyCases } from "./keys.js";
import { leavingCases } from "./leaving.js";
import { liveRuleCases } from "./live-rules.js";
import { matchCases } from "./match.js";
import { mountedCases } from "./mounted.js";
import { observeCases } from "./observing.js";
import { pathCases } from "./paths.js";
import { perRequestCases } from "./per-request.js";
import { planCases } from "./plans.js";
import { proxyWarningCases } from "./proxy-warning.js";
import { readBackCases } from "./read-back.js";
import { refundCases } from "./refunds.js";
import { responseCases } from "./responses.js";
import { routeCases } from "./routes.js";
import { scheduleCases } from "./schedules.js";
import { secretKeyCases } from "./secret-keys.js";
import { settleCases } from "./settling.js";
import { severalCases } from "./several.js";
import { spoofingCases } from "./spoofing.js";
import { storeFaultCases } from "./store-faults.js";
import { waitingCases } from "./waiting.js";
import { warningCases } from "./warnings.js";
import { watchedCases } from "./watched.js";
import { type AdapterRunner, type AdapterSuite, Web } from "./web.js";

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
    headerCases(suite);
    readBackCases(suite);
    severalCases(suite);
    mountedCases(suite);
    matchCases(suite);
    pathCases(suite);
    keyCases(suite);
    secretKeyCases(suite);
    functionCases(suite);
    watchedCases(suite);
    routeCases(suite);
    clientIpCases(suite);
    spoofingCases(suite);
    proxyWarningCases(suite);
    decisionCases(suite);
    perRequestCases(suite);
    planCases(suite);
    exemptCases(suite);
    banCases(suite);
    blockCases(suite);
    liveRuleCases(suite);
    bodyCases(suite);
    hookCases(suite);
    observeCases(suite);
    refundCases(suite);
    settleCases(suite);
    waitingCases(suite);
    leavingCases(suite);
    scheduleCases(suite);
    faultCases(suite);
    storeFaultCases(suite);
    warningCases(suite);
    hostileCases(suite);
  });
}
