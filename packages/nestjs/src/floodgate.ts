import type { Decision } from "@floodgate/core";
import { type AppLimitOptions, functionOrNothing, getOrMake, type RouteLimit, RouteLimits, warnOnce } from "@floodgate/core/adapter";
import { memoryStore } from "@floodgate/store-memory";
import { type CustomDecorator, type ExecutionContext, SetMetadata, type Type } from "@nestjs/common";
import { type DiscoveryService, MetadataScanner, Reflector } from "@nestjs/core";
import { nestReader } from "./context.js";

export interface FloodgateModuleOptions<Own extends string = string> extends AppLimitOptions<ExecutionContext, Own> {
  /**
   * Answers a rejected request in place of the problem+json body: throws an exception of the app, or returns the response of the
   * `RateLimitException`, a text or an object. The headers are set already. Undefined keeps the usual body.
   */
  onLimited?: (context: ExecutionContext, decision: Decision | undefined) => unknown;
}

/** The options of a handler or a controller. What they leave out is as in the module's. */
export type RouteRateLimitOptions = Omit<FloodgateModuleOptions, "global" | "decisionName">;

/** What a decorator says. */
type Said = RouteRateLimitOptions | "skip" | "app";

const metadata = "floodgate:rate-limit";
const reflector = new Reflector();
const scanner = new MetadataScanner();

/**
 * Limits a handler by its own options, which are over those of the module, with a count of its own. On a class, its handlers share that count.
 *
 *     @RateLimit({ limit: 5, window: "15m" })
 */
export const RateLimit = (options: RouteRateLimitOptions = {}): CustomDecorator => SetMetadata(metadata, options);

/** Turns the limit off for a handler or a class. `false` turns the module's limit on again, for a handler of such a class. */
export const SkipRateLimit = (skip: boolean = true): CustomDecorator => SetMetadata(metadata, skip ? "skip" : "app");

export type Limit = RouteLimit<ExecutionContext, FloodgateModuleOptions>;
type Handler = ReturnType<ExecutionContext["getHandler"]>;

/**
 * The limits of an app. Inject it to see, reset or block a key: `floodgate.limiters.get("AuthController.login")?.reset(ip)`. The limit of a
 * handler has its name, unless its options say another; that of a class has the class's.
 */
export class Floodgate extends RouteLimits<ExecutionContext, FloodgateModuleOptions> {
  /** Whether a guard asks for limits. */
  isGuarded = false;
  readonly #discovery: DiscoveryService;
  readonly #limits = new WeakMap<Type, Map<Handler | Type, Limit | undefined>>();

  /** @throws FloodgateError if an option is wrong. */
  constructor(options: FloodgateModuleOptions, discovery: DiscoveryService) {
    super("FloodgateModule", options, ["onLimited"], nestReader, memoryStore, (where, { onLimited }) => {
      functionOrNothing(where, "onLimited", onLimited, '() => { throw new ServiceUnavailableException("Slow down"); }');
    });
    this.#discovery = discovery;
  }

  /** The limit of a handler; undefined if it has none. */
  limitOf(handler: Handler, type: Type): Limit | undefined {
    const limits = getOrMake(this.#limits, type, () => new Map<Handler | Type, Limit | undefined>());
    if (limits.has(handler)) return limits.get(handler);
    const own = reflector.get<Said>(metadata, handler);
    const said = own ?? reflector.get<Said>(metadata, type) ?? "app";
    let limit = said === "app" ? this.app : undefined;
    if (typeof said === "object") {
      // All handlers of a class share its limit.
      limit = own ? this.of(said, `${type.name}.${handler.name}`) : getOrMake(limits, type, () => this.of(said, type.name));
    }
    limits.set(handler, limit);
    return limit;
  }

  /** Makes all limits, so that a wrong option stops the app when it starts. Warns if nothing asks for them. */
  onModuleInit(): void {
    for (const { metatype } of [...this.#discovery.getControllers(), ...this.#discovery.getProviders()]) {
      for (const name of scanner.getAllMethodNames(metatype?.prototype)) this.limitOf(metatype?.prototype[name], metatype as Type);
    }
    // All guards are made by now.
    if (this.isGuarded) return;
    warnOnce(
      "FLOODGATE_NO_GUARD",
      "FloodgateModule is imported, but no FloodgateGuard is, so nothing is limited. Add it to the providers of your module: { provide: APP_GUARD, useClass: FloodgateGuard }.",
    );
  }

  onModuleDestroy(): void {
    this.close();
  }
}
