import { peekAt } from "../decide/zero-limits.js";
import type { Key } from "../limits/key.js";
import { RequestContext } from "../requests/request-context.js";
import type { RequestReader } from "../requests/request-reader.js";
import type { CompiledRule } from "../rules/compiled-rule.js";
import { explainRules } from "../rules/explain.js";
import { isBuiltInKey, parseKeyName } from "../rules/key-source.js";
import { type Reason, reasonsOf, whyNot } from "../rules/reasons.js";
import type { PlainRule } from "../rules/rule.js";
import { openMiddlewares, type RateLimitSetup } from "./rate-limit-setup.js";

/** A request that somebody describes. */
export interface AskedRequest {
  readonly method: string;
  readonly path: string;
  /** By lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** The client's address. */
  readonly ip: string | undefined;
  readonly plan: string | undefined;
  /** The values of the app's own keys, by name; of a key that is a function, by the rule's name. */
  readonly keys: Readonly<Record<string, Key>>;
}

const reader: RequestReader<AskedRequest> = {
  identity: (request) => request,
  method: ({ method }) => method,
  path: ({ path }) => path,
  header: ({ headers }, name) => (Object.hasOwn(headers, name) ? headers[name] : undefined),
  remoteAddress: ({ ip }) => ip,
  clientIp: ({ ip }) => ip,
  trustsProxy: () => true,
  route: () => undefined,
};

/** A context in which the app's functions are not called: their answers are given, by name. */
class AskedContext extends RequestContext<AskedRequest> {
  readonly #names: string[];

  constructor(request: AskedRequest, limit: RateLimitSetup<AskedRequest>, rule: CompiledRule<AskedRequest> | undefined) {
    const { ipv6Prefix } = limit.settings;
    super({ ...request }, limit, { reader, clientIp: reader.clientIp, isOwnClientIp: false, ipv6Prefix, plan: () => request.plan });
    this.#names = rule === undefined ? [] : ownKeys(rule);
  }

  /** The parts of a key are asked in their order. */
  override key(): Key | undefined {
    return this.request.keys[this.#names.shift() as string];
  }

  override cost(): number {
    return 1;
  }
}

/** The names that a rule counts by; none if its key is a function. */
function keyNames({ options: { key = "ip" } }: CompiledRule<AskedRequest>): string[] {
  return typeof key === "function" ? [] : ([key].flat() as string[]).map((part) => parseKeyName(part).name);
}

/** The names of a rule's keys that the app defines. */
function ownKeys(rule: CompiledRule<AskedRequest>): string[] {
  return typeof rule.options.key === "function" ? [rule.name] : keyNames(rule).filter((name) => !isBuiltInKey(name));
}

/**
 * What the rules of this process's middlewares would say of a request, and why. The app's own functions are not called, and nothing is
 * charged. The option `skip` and the order of middlewares are not known here.
 */
export async function askProcess(request: AskedRequest): Promise<Reason[]> {
  const asked = openMiddlewares.values().map((limit: RateLimitSetup<AskedRequest>) => {
    return explainRules(limit.version.rules, (rule) => new AskedContext(request, limit, rule)).then((explanations) =>
      reasonsOf(
        explanations,
        (explanation) => whyNot(explanation.rule.options as PlainRule, explanation, () => hintOf(explanation.rule)),
        (check) => peekAt(limit.client.guard, check.limit, check.key),
      ),
    );
  });
  return (await Promise.all(asked)).flat();
}

function hintOf(rule: CompiledRule<AskedRequest>): string {
  const known = keyNames(rule).filter((name) => name === "ip" || name.startsWith("header:"));
  return `give ${[...known, ...ownKeys(rule).map((name) => `the key ${name}`)].join(" and ") || "a route"}`;
}
