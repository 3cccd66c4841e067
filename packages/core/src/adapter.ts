// For authors of adapters, beside what `index.ts` exports: the rate limit of a web app without its framework.
// biome-ignore-all assist/source/organizeImports: grouped by subject

// The limit. Bundlers keep this order of modules: with this line first, a bundle compresses to 400 bytes less.
export { type AppLimitOptions, type RouteLimit, RouteLimits } from "./middleware/route-limits.js";
export { checkNamed, type NamedCheck, type NamedDecisions } from "./middleware/named-checks.js";
export { RateLimit } from "./middleware/rate-limit.js";
export { type CheckedRule, type Outcome, unlimited } from "./responses/outcome.js";
export { type ContextFramework, contextMiddleware } from "./middleware/context-middleware.js";
export { type RateLimitControls, withControls } from "./middleware/controls.js";
export { renewSlots } from "./limits/limiter.js";
export { leaveSlots } from "./limits/slots.js";
export { type LimitAnswer, limitedMessage } from "./middleware/limit-for.js";
export { checkDecisionName, type NodeAnswer, type NodeAnswered, type NodeFramework, nodeMiddleware } from "./middleware/node-middleware.js";
export { afterOnLimited, canReject, decideRequest, ensureAnswer, passInTurn, runOnLimited } from "./middleware/node-middleware.js";
export { withFaults } from "./support/errors.js";

// Its options
export type { RateLimitOptions } from "./middleware/rate-limit-options.js";
export type { LimitOptions, OnMissingKey } from "./rules/rule.js";
export type { KeyInfo, ResponseInfo } from "./requests/functions.js";
export type { KeyName, KeyOption } from "./rules/key-source.js";
export type { Match } from "./rules/match.js";
export type { PlanNumbers } from "./rules/plans.js";
export type { ClientIpOption } from "./requests/client-ip.js";
export type { HeaderFormat } from "./responses/headers.js";
export type { Afterwards } from "./responses/afterwards.js";
export type { RefundWhen } from "./rules/cost.js";
export type { Promised } from "./support/promises.js";

// Requests
export { foreignRequest } from "./requests/foreign-request.js";
export { type NodeMessage, nodeHeader, nodeReader, nodeReaderOf, type RequestReader, routePattern } from "./requests/request-reader.js";
export { edgeAddress, hasLeft, type Outgoing, outgoingOf, socketAddress, type WebRequest, webHeader } from "./requests/web-runtime.js";
export { forgeableClientIp, maxHops, trustsEveryAddress } from "./requests/trusted-proxies.js";
export { singleAddress, TrustedProxies } from "./requests/trusted-proxies.js";
export { mountedPaths, parsedPath, reparsedPaths, sentPath } from "./requests/request-reader.js";
export { type Descriptor, type DescriptorEntry, entryValue } from "./requests/descriptor.js";
export type { PossiblePath, RequestPath } from "./requests/path.js";
export { decisionOf, type RequestContext } from "./requests/request-context.js";

// Responses
export { type Header, isLimitHeader } from "./responses/headers.js";
export { dropBody, type HeaderTarget, listed, setHeaders } from "./middleware/node-middleware.js";
export { type Body, reducedCapacity } from "./responses/outcome.js";
export { clientClosedRequest, type NodeResponse, whenEnded } from "./responses/response-end.js";
export { answeredBy, responseOf, turnOf, type WebResponse, WebResponseEnd, withHeaders } from "./responses/web-response.js";
export { HeldRequests } from "./responses/held-requests.js";

// Events
export { ignoresAllowed } from "./events/listeners.js";

// Support
export { flag, functionOrNothing, oneOf, yesOrNo } from "./support/options.js";
export { reasonOf, wrongOption } from "./support/errors.js";
export { getOrMake } from "./support/maps.js";
export { andThen, isPromise } from "./support/promises.js";
export { warnOnce } from "./support/warn.js";
