import { Readable } from "node:stream";
import type { Decision } from "@floodgate/core";
import type { Outcome } from "@floodgate/core/adapter";
import { afterOnLimited, andThen, canReject, decisionOf, dropBody, limitedMessage, passInTurn, setHeaders } from "@floodgate/core/adapter";
import { type CanActivate, createParamDecorator, type ExecutionContext, HttpException, Inject, StreamableFile } from "@nestjs/common";
import { identityOf, responseOf } from "./context.js";
import { Floodgate, type Limit } from "./floodgate.js";

/**
 * Limits the handlers that it guards: all of an app, as `{ provide: APP_GUARD, useClass: FloodgateGuard }`, or those with
 * `@UseGuards(FloodgateGuard)`. A rejected request is a `RateLimitException`, in a gateway a `WsException`, and in a microservice an
 * `RpcException`. A request that two of these guards see is counted once.
 */
export class FloodgateGuard implements CanActivate {
  readonly #floodgate: Floodgate;

  constructor(floodgate: Floodgate) {
    floodgate.isGuarded = true;
    this.#floodgate = floodgate;
  }

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const found = this.#floodgate.limitOf(context.getHandler(), context.getClass());
    if (found === undefined) return true;
    const wasBegun = responseOf(context)?.headersSent === true;
    return andThen(found.limit.decide(context), (outcome: Outcome) => apply(context, found, outcome, wasBegun)) as Promise<boolean>;
  }
}

Inject(Floodgate)(FloodgateGuard, undefined, 0);

/** The decision of the handler's limit, as a parameter of the handler; undefined if none applied. */
export const RateLimitDecision: (name?: string) => ParameterDecorator = createParamDecorator(
  (name: string | undefined, context: ExecutionContext): Decision | undefined => decisionOf(identityOf(context), name),
);

function apply(context: ExecutionContext, { limit, options: { onLimited } }: Limit, outcome: Outcome, wasBegun: boolean) {
  const [type, response] = [context.getType<string>(), responseOf(context)];
  // The fields of one GraphQL operation share a response, which shows the newest numbers.
  const headers = type === "graphql" ? outcome.headers.map(({ name, value }) => ({ name, value })) : outcome.headers;
  if (response !== undefined) setHeaders(response, headers);
  if (outcome.action === "reject") {
    // Fastify's reply has headers of its own, beside those of its response.
    if (type === "http" && context.getArgByIndex(1) !== response && !response?.headersSent) dropBody(context.getArgByIndex(1));
    // The exception stops the handler. Fields of GraphQL may be streamed, so one of them must not end the response.
    const isLate = response?.headersSent === true && !canReject(response, wasBegun && type === "http");
    const handler = isLate ? undefined : onLimited && (() => onLimited(context, outcome.decision));
    return afterOnLimited(handler, (own) => reject(type, response, outcome, own)) as Promise<never>;
  }
  return passInTurn(response, outcome, limit.waiting, () => true);
}

/** Throws at once where it can: a promise costs more than the decision. */
function reject(type: string, response: ReturnType<typeof responseOf>, outcome: Outcome, answered: unknown): Promise<never> {
  // A stack would cost more than all the rest, and always show the same calls of Nest.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  const exception = new RateLimitException(outcome, answered);
  Error.stackTraceLimit = stackTraceLimit;
  if (type === "ws" || type === "rpc") return rejectMessage(type, exception);
  const { contentType } = outcome.body;
  // Nest 11, whose exceptions have no `errorCode`, takes problem+json for a mistake, and would warn at each rejection.
  const isKnown = "errorCode" in exception || !contentType.startsWith("application/problem");
  if (type === "http" && isKnown && answered === undefined && response?.headersSent === false)
    response.setHeader("Content-Type", contentType);
  throw exception;
}

/** A rejected request, with the status 429. Its response is the problem+json body. The headers of the limit are set already. */
export class RateLimitException extends HttpException {
  /** The most restrictive decision; undefined if the request has no key to count it by. */
  readonly decision: Decision | undefined;
  /** The time until the same request would pass, in milliseconds; Infinity if no wait helps. */
  readonly retryAfterMs: number;
  /** What clients of GraphQL see of the error. */
  readonly extensions: { readonly code: string; readonly retryAfterMs: number };

  /** @param answered what `onLimited` has answered in place of the usual body. */
  constructor({ status, body, decision }: Outcome, answered: unknown) {
    // With an object, Nest would make another message of the class's name first.
    super(limitedMessage(decision), status);
    this.decision = decision;
    this.retryAfterMs = decision?.retryAfterMs ?? Number.POSITIVE_INFINITY;
    this.extensions = { code: "TOO_MANY_REQUESTS", retryAfterMs: this.retryAfterMs };
    // Nest would wrap a text into JSON. To a HEAD request, Nest 11 sends no stream that ends without a chunk.
    const file = (content: Buffer): object => new StreamableFile(Readable.from([content]), { length: content.length });
    const usual = (): object => (body.contentType.startsWith("text/") ? file(Buffer.from(body.text)) : JSON.parse(body.text));
    Object.assign(this, { response: answered ?? usual() });
  }
}

/** Throws a rejected message as the exception that the filters of its transport know. */
async function rejectMessage(type: "ws" | "rpc", cause: RateLimitException): Promise<never> {
  const Exception = type === "ws" ? (await import("@nestjs/websockets")).WsException : (await import("@nestjs/microservices")).RpcException;
  throw Object.assign(new Exception({ status: "error", ...cause.extensions, message: cause.message }), { cause });
}
