import { expectTypeOf, test } from "vitest";
import {
  type Checked,
  type Decision,
  type FetchContext,
  type FetchRequest,
  fixedWindow,
  type RateLimitWrapper,
  rateLimit,
} from "../src/index.js";

const policy = fixedWindow({ limit: 1, window: "1m" });

/** As `NextRequest` is. */
class OwnRequest extends Request {
  readonly cookies: unknown = undefined;
}

interface Session extends FetchContext {
  user: { id: string };
}

test("a limit wraps handlers of any request type and any further arguments", () => {
  const limit = rateLimit({ policy });
  const route = limit(async (request: OwnRequest, { params }: { params: Promise<{ id: string }> }) =>
    Response.json([request.cookies, (await params).id]),
  );
  expectTypeOf(route).toEqualTypeOf<(request: OwnRequest, context: { params: Promise<{ id: string }> }) => Promise<Response>>();
  const worker = limit(
    (_request, _env: { DB: object }, context: { waitUntil(work: Promise<unknown>): void }) => new Response(`${context}`),
  );
  expectTypeOf(worker).parameters.toEqualTypeOf<[Request, { DB: object }, { waitUntil(work: Promise<unknown>): void }]>();
  expectTypeOf(limit(() => new Response())).returns.toEqualTypeOf<Promise<Response>>();
  // @ts-expect-error a handler answers a response
  limit(() => "hello");
});

test("check takes an address and what the app adds, and answers a response, headers and a decision", async () => {
  const limit = rateLimit({ policy, key: ({ context }) => context["user"]?.id });

  const checked = await limit.check(new Request("http://localhost/"), { ip: "192.0.2.1", user: { id: "ann" } });
  expectTypeOf(checked).toMatchTypeOf<Checked>();
  expectTypeOf(checked.decision).toEqualTypeOf<Decision | undefined>();
  expectTypeOf(checked.finish(new Response())).toEqualTypeOf<Response>();
  // @ts-expect-error an address is a text
  void (() => limit.check(new Request("http://localhost/"), { ip: 1 }));
});

test("a context's type is known to functions and to check", () => {
  const limit = rateLimit({ policy, key: ({ request, context }: FetchRequest<Session>) => [request.method, context.user.id] });
  const typed: RateLimitWrapper<Session> = limit;
  // @ts-expect-error no user
  void (() => typed.check(new Request("http://localhost/"), { ip: "192.0.2.1" }));
  // @ts-expect-error a misspelt key
  void (() => rateLimit({ policy, key: "usr", keys: { user: () => "1" } }));
});
