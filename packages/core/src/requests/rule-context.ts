import { listenerOf, tellWarning } from "../limits/events.js";
import type { RateLimitOptions } from "../middleware/rate-limit-options.js";
import type { RuleContext } from "../rules/compiled-rule.js";
import { compileExempt } from "../rules/exempt.js";
import { FloodgateError, shown } from "../support/errors.js";
import { functionOrNothing, wholeNumber } from "../support/options.js";
import { isPromise } from "../support/promises.js";
import { clientIpResolver } from "./client-ip.js";
import { ipKey } from "./ip.js";
import { isBuiltInKey, type KeySources } from "./key-source.js";
import { frameworkIp } from "./proxy-warning.js";
import type { RequestReader } from "./request-reader.js";
import { keyDigests } from "./secret-keys.js";
import { isWholeIpv6 } from "./whole-address.js";

/** What the rules of a middleware share. */
export function ruleContext<Req>(where: string, options: RateLimitOptions<Req, string>, reader: RequestReader<Req>): RuleContext<Req> {
  const costs = options.costs ?? {};
  const onEvent = listenerOf(options.onEvent);
  for (const [name, cost] of Object.entries(costs)) functionOrNothing(where, `costs.${name}`, cost, "(req) => req.body.items.length");
  return {
    sources: keySources(where, options, reader),
    costs,
    plan: options.plan,
    exempt: options.rules === undefined ? [] : compileExempt(where, options.exempt),
    warn: (code, message, name) => tellWarning(onEvent, code, message, `${code} ${name}`),
  };
}

/** Where the keys of a middleware's rules come from. */
function keySources<Req>(where: string, options: RateLimitOptions<Req, string>, reader: RequestReader<Req>): KeySources<Req> {
  const prefix = options.ipv6Prefix === undefined ? 56 : wholeNumber(where, "ipv6Prefix", options.ipv6Prefix, 1, 56);
  if (prefix > 128) {
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `${where}: \`ipv6Prefix\` must be 1 to 128 bits, but was ${prefix}. Write ipv6Prefix: 56.`,
    );
  }
  const keys = options.keys ?? {};
  for (const [name, key] of Object.entries(keys)) {
    functionOrNothing(where, `keys.${name}`, key, "(req) => req.user?.id");
    if (isBuiltInKey(name)) {
      throw new FloodgateError(
        "FLOODGATE_CONFLICTING_OPTIONS",
        `${where}: \`keys\` cannot define ${shown(name)} anew. Give it another name.`,
      );
    }
  }
  const resolve: KeySources<Req>["ip"] =
    options.clientIp === undefined
      ? frameworkIp(reader, listenerOf(options.onEvent))
      : clientIpResolver<Req>(where, options.clientIp, reader.remoteAddress, reader.header);
  const normalised = (ip: string | undefined): string | undefined => (ip === undefined ? undefined : ipKey(ip, prefix));
  return {
    keys,
    address: resolve,
    // The address is not asked for as a limit does: a key that does not count by it warrants no warning about proxies.
    isWholeIpv6: (request, text) => prefix < 128 && isWholeIpv6(options.clientIp === undefined ? reader.clientIp : resolve, request, text),
    ip: (request) => {
      const ip = resolve(request);
      return isPromise(ip) ? ip.then(normalised) : normalised(ip);
    },
    path: (request) => reader.path(request),
    route: (request) => reader.route(request),
    header: (request, name) => reader.header(request, name),
    ipv6Prefix: prefix,
    digests: keyDigests(where, options),
  };
}
