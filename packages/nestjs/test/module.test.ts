import {
  type ArgumentsHost,
  BadRequestException,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  Inject,
  Injectable,
  Module,
  ServiceUnavailableException,
  UseFilters,
  UseGuards,
} from "@nestjs/common";
import { APP_GUARD } from "@nestjs/core";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  type Decision,
  Floodgate,
  FloodgateGuard,
  FloodgateModule,
  type FloodgateModuleOptions,
  fixedWindow,
  leakyBucket,
  memoryStore,
  RateLimit,
  RateLimitDecision,
  RateLimitException,
  SkipRateLimit,
} from "../src/index.js";
import { platforms, problemType, serving, statuses } from "./serving.js";

const policy = fixedWindow({ limit: 2, window: "365d" });
const guard = { provide: APP_GUARD, useClass: FloodgateGuard };

@Controller()
class Items {
  @Get("items/:id")
  item(@RateLimitDecision() decision: Decision | undefined): object {
    return { remaining: decision?.remaining };
  }

  @Get("strict")
  @RateLimit({ limit: 1, window: "365d" })
  strict(): string {
    return "strict";
  }

  @Get("free")
  @SkipRateLimit()
  free(@RateLimitDecision() decision: Decision | undefined): object {
    return { decision: decision ?? "none" };
  }
}

@Controller("shared")
@RateLimit({ policy })
class Shared {
  @Get("a")
  a(): string {
    return "a";
  }

  @Get("b")
  b(): string {
    return "b";
  }

  @Get("own")
  @RateLimit({ limit: 1, window: "365d" })
  own(): string {
    return "own";
  }
}

@Controller("skipped")
@SkipRateLimit()
class Skipped {
  @Get("all")
  all(): string {
    return "all";
  }

  @Get("counted")
  @SkipRateLimit(false)
  counted(): string {
    return "counted";
  }
}

afterEach(() => void vi.restoreAllMocks());

describe.each(platforms)("on %s", (_, platform) => {
  const options = { platform };
  const limited = (limit: FloodgateModuleOptions, ...controllers: (new () => object)[]) => ({
    imports: [FloodgateModule.forRoot(limit)],
    providers: [guard],
    controllers: [Items, ...controllers],
  });

  it("APP_GUARD limits all handlers; RateLimit gives one options and a count of its own; SkipRateLimit turns it off", async () => {
    await serving(
      limited({ policy }),
      async ({ url, app }) => {
        expect(await (await fetch(`${url}/items/1`)).json()).toEqual({ remaining: 1 });
        expect([await statuses(`${url}/items/2`, 2), await statuses(`${url}/strict`, 2)]).toEqual([
          [200, 429],
          [200, 429],
        ]);
        expect(await (await fetch(`${url}/free`)).json()).toEqual({ decision: "none" });
        const floodgate = app.get(Floodgate);
        expect([...floodgate.limiters.keys()]).toEqual(["default", "Items.strict"]);
        floodgate.limiters.get("Items.strict")?.reset("127.0.0.1");
        expect(await statuses(`${url}/strict`, 2)).toEqual([200, 429]);
      },
      options,
    );
  });

  it("the handlers of a class with RateLimit share a count, and one of them may have its own", async () => {
    await serving(
      limited({ policy: fixedWindow({ limit: 9, window: "365d" }) }, Shared, Skipped),
      async ({ url }) => {
        expect([await statuses(`${url}/shared/a`, 1), await statuses(`${url}/shared/b`, 2)]).toEqual([[200], [200, 429]]);
        expect(await statuses(`${url}/shared/own`, 2)).toEqual([200, 429]);
        const headers = async (path: string): Promise<string | null> => (await fetch(`${url}/${path}`)).headers.get("ratelimit-policy");
        expect([await headers("skipped/all"), await headers("skipped/counted")]).toEqual([null, '"default";q=9;w=31536000']);
      },
      options,
    );
  });

  it("a rejection is a RateLimitException, whose response is the problem of every adapter", async () => {
    await serving(
      limited({ policy }),
      async ({ url }) => {
        await statuses(`${url}/items/1`, 2);
        const response = await fetch(`${url}/items/1`);
        expect(await response.json()).toMatchObject({ title: "Quota exceeded", status: 429, "violated-policies": ["default"] });
        expect([response.status, response.headers.get("cache-control")]).toEqual([429, "no-store"]);
        expect(response.headers.get("content-type")?.split(";")[0]).toBe(problemType);
        expect(response.headers.get("retry-after")).toMatch(/^\d+$/);
        // Rejections have no stack, other errors have one.
        expect(new Error("other").stack).toMatch(/\n\s+at /);
      },
      options,
    );
  });

  it("filters see a rejection, with its headers set, and may answer it", async () => {
    const seen: RateLimitException[] = [];
    @Catch(RateLimitException)
    class Limited implements ExceptionFilter {
      catch(exception: RateLimitException, host: ArgumentsHost): void {
        seen.push(exception);
        const response = host.switchToHttp().getResponse();
        response.status(418).header("content-type", "text/plain").send("Slow down");
      }
    }
    @Controller()
    @UseFilters(Limited)
    class Filtered {
      @Get("filtered")
      filtered(): string {
        return "passed";
      }
    }
    await serving(
      limited({ policy }, Filtered),
      async ({ url }) => {
        await statuses(`${url}/filtered`, 2);
        const response = await fetch(`${url}/filtered`);
        expect([response.status, await response.text(), response.headers.get("ratelimit")]).toEqual([
          418,
          "Slow down",
          expect.stringMatching(/^"default";r=0;/),
        ]);
        expect(seen).toMatchObject([{ status: 429, decision: { name: "default", allowed: false }, retryAfterMs: expect.any(Number) }]);
        expect(seen[0]?.message).toMatch(/^Rate limit "default" exceeded\. Try again in \d+ seconds\.$/);
        expect(seen[0]?.getResponse()).toMatchObject({ status: 429 });
      },
      options,
    );
  });

  it.each<[string, FloodgateModuleOptions["onLimited"], number, object | string]>([
    ["throws", () => { throw new ServiceUnavailableException("later"); }, 503, { message: "later", error: "Service Unavailable", statusCode: 503 }], // biome-ignore format: a row
    ["returns an object", (_, decision) => ({ slow: decision?.name }), 429, { slow: "default" }],
    ["returns a promise", async () => ({ slow: "down" }), 429, { slow: "down" }],
    ["returns a text, as of any exception", () => "Slow down", 429, { statusCode: 429, message: "Slow down" }],
  ])("onLimited that %s answers a rejection", async (_, onLimited, status, body) => {
    await serving(
      limited({ policy, onLimited: onLimited as NonNullable<typeof onLimited> }),
      async ({ url }) => {
        await statuses(`${url}/items/1`, 2);
        const response = await fetch(`${url}/items/1`);
        expect([response.status, await response.json(), response.headers.get("cache-control")]).toEqual([status, body, "no-store"]);
      },
      options,
    );
  });

  it("key: route counts by the pattern, with the global prefix, and key functions get the context", async () => {
    const keys: unknown[] = [];
    const key = (context: ExecutionContext, { route }: { route: string }): string => {
      keys.push([context.getHandler().name, route]);
      return route;
    };
    await serving(
      limited({ policy, key }),
      async ({ url }) => {
        expect([await statuses(`${url}/v1/items/1`, 1), await statuses(`${url}/v1/items/2`, 2)]).toEqual([[200], [200, 429]]);
        expect(keys[0]).toEqual(["item", "/v1/items/:id"]);
      },
      { platform, prepare: (app) => void app.setGlobalPrefix("v1") },
    );
  });

  it("a request that two guards see is counted once", async () => {
    @Controller()
    @UseGuards(FloodgateGuard)
    class Twice {
      @Get("twice")
      twice(): string {
        return "twice";
      }
    }
    await serving(
      limited({ policy }, Twice),
      async ({ url }) => {
        const { headers } = await fetch(`${url}/twice`);
        expect(headers.get("ratelimit")).toMatch(/^"default";r=1;t=\d+$/);
        expect(await statuses(`${url}/twice`, 2)).toEqual([200, 429]);
      },
      options,
    );
  });

  it("UseGuards limits its handlers alone; with global: false, APP_GUARD limits those with RateLimit alone", async () => {
    @Controller()
    class Some {
      @Get("guarded")
      @UseGuards(FloodgateGuard)
      guarded(): string {
        return "guarded";
      }

      @Get("open")
      open(): string {
        return "open";
      }
    }
    await serving(
      { imports: [FloodgateModule.forRoot({ policy })], controllers: [Some] },
      async ({ url }) => {
        expect([await statuses(`${url}/guarded`), await statuses(`${url}/open`)]).toEqual([
          [200, 200, 429],
          [200, 200, 200],
        ]);
      },
      options,
    );
    await serving(
      limited({ global: false }, Some),
      async ({ url }) => {
        expect([await statuses(`${url}/open`), await statuses(`${url}/strict`)]).toEqual([
          [200, 200, 200],
          [200, 429, 429],
        ]);
      },
      options,
    );
  });

  it("forRootAsync makes the options of what it injects: a store, rules and keys", async () => {
    @Injectable()
    class Accounts {
      userOf(context: ExecutionContext): string | undefined {
        return context.switchToHttp().getRequest().headers["x-user"];
      }
    }
    const store = memoryStore();
    const rules = [{ name: "by-user", key: "user", policy, match: { path: "/items/:id" } }];
    @Module({ providers: [Accounts, { provide: "RULES", useValue: rules }, { provide: "STORE", useValue: store }], exports: [Accounts, "RULES", "STORE"] }) // biome-ignore format: a row
    class Config {}

    const floodgate = FloodgateModule.forRootAsync({
      imports: [Config],
      inject: [Accounts, "RULES", "STORE"],
      useFactory: (accounts: Accounts, injected: typeof rules, store: ReturnType<typeof memoryStore>) => ({
        rules: injected,
        keys: { user: (context: ExecutionContext) => accounts.userOf(context) },
        store,
      }),
    });
    await serving(
      { imports: [floodgate], providers: [guard], controllers: [Items] },
      async ({ url, app }) => {
        const as = (user: string): Promise<number[]> => statuses(`${url}/items/1`, 3, { headers: { "x-user": user } });
        expect([await as("ann"), await as("bob")]).toEqual([
          [200, 200, 429],
          [200, 200, 429],
        ]);
        expect(app.get(Floodgate).limiter.store).toBe(store);
      },
      options,
    );
  });

  it("refunds by the status of the response", async () => {
    @Controller()
    class Failing {
      @Get("failing")
      failing(): never {
        throw new BadRequestException();
      }
    }
    await serving(
      limited({ policy, refundWhen: (status) => status === 400 }, Failing),
      async ({ url }) => {
        expect(await statuses(`${url}/failing`, 5)).toEqual([400, 400, 400, 400, 400]);
      },
      options,
    );
  });

  it("closing the app releases requests that are held", async () => {
    const held: Promise<number[]>[] = [];
    await serving(
      limited({ policy: leakyBucket({ capacity: 5, leak: 1, every: "1h" }), key: "global" }),
      async ({ url, app }) => {
        await statuses(`${url}/items/1`, 1);
        held.push(statuses(`${url}/items/1`, 1));
        await expect.poll(() => app.get(Floodgate).limiter.peek("global")).toMatchObject({ remaining: 3 });
      },
      options,
    );
    expect(await held[0]).toEqual([200]);
  });
});

describe("a mistake", () => {
  it.each([
    [{}, "FLOODGATE_MISSING_LIMIT"],
    [{ limit: -1, window: "1m" }, "FLOODGATE_INVALID_OPTION"],
    [{ ttl: 60, limit: 1 }, "FLOODGATE_UNKNOWN_OPTION"],
    [{ policy, onLimited: "no" }, "FLOODGATE_INVALID_OPTION"],
  ])("in the options %j stops the app when it starts", async (wrong, code) => {
    const imports = [FloodgateModule.forRoot(wrong as never)];
    await expect(serving({ imports }, async () => undefined)).rejects.toMatchObject({ code });
  });

  it("in a handler's options stops the app when it starts, and names the handler", async () => {
    @Controller()
    class Wrong {
      @Get("wrong")
      @RateLimit({ limit: 0.5, window: "1m" })
      wrong(): string {
        return "wrong";
      }
    }
    const metadata = { imports: [FloodgateModule.forRoot({ policy })], providers: [guard], controllers: [Wrong] };
    await expect(serving(metadata, async () => undefined)).rejects.toThrow("FloodgateModule (Wrong.wrong): ");
  });

  it("such as no guard causes a warning", async () => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const logged = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    await serving({ imports: [FloodgateModule.forRoot({ policy })], controllers: [Items] }, async () => undefined);
    expect(JSON.stringify([warned.mock.calls, logged.mock.calls])).toContain("FLOODGATE_NO_GUARD");
  });
});

it("a service resets the count of a client", async () => {
  @Controller()
  class Admin {
    readonly #floodgate: Floodgate;

    constructor(@Inject(Floodgate) floodgate: Floodgate) {
      this.#floodgate = floodgate;
    }

    @Get("reset")
    @SkipRateLimit()
    reset(): string {
      this.#floodgate.limiter.reset("127.0.0.1");
      return "reset";
    }
  }
  const metadata = { imports: [FloodgateModule.forRoot({ policy })], providers: [guard], controllers: [Items, Admin] };
  await serving(metadata, async ({ url }) => {
    expect(await statuses(`${url}/items/1`)).toEqual([200, 200, 429]);
    expect([await statuses(`${url}/reset`, 1), await statuses(`${url}/items/1`, 1)]).toEqual([[200], [200]]);
  });
});
