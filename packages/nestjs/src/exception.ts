import type { Decision } from "@floodgate/core";
import { limitedMessage, type Outcome } from "@floodgate/core/adapter";
import { HttpException, StreamableFile } from "@nestjs/common";

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
    // Nest would wrap a text into JSON.
    const usual = (): object => (body.contentType.startsWith("text/") ? new StreamableFile(Buffer.from(body.text)) : JSON.parse(body.text));
    Object.assign(this, { response: answered ?? usual() });
  }
}

/** Throws a rejected message as the exception that the filters of its transport know. */
export async function rejectMessage(type: "ws" | "rpc", cause: RateLimitException): Promise<never> {
  const Exception = type === "ws" ? (await import("@nestjs/websockets")).WsException : (await import("@nestjs/microservices")).RpcException;
  throw Object.assign(new Exception({ status: "error", ...cause.extensions, message: cause.message }), { cause });
}
