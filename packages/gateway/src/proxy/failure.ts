import type { Logger } from "pino";
import { type Answer, problem } from "./answer.js";

/** The upstream took too long. */
export class UpstreamTimeout extends Error {
  readonly phase: "connect" | "answer";

  constructor(phase: "connect" | "answer") {
    super(phase === "connect" ? "The upstream did not accept a connection in time." : "The upstream did not answer in time.");
    this.phase = phase;
  }
}

/** What the client is told if the upstream fails. Addresses and details of the network stay in the log. */
export function failureAnswer(error: unknown): Answer {
  if (error instanceof UpstreamTimeout) return problem(504, error.message);
  const code = codeOf(error);
  if (code.startsWith("HPE_") || code === "ERR_INVALID_CHAR") return problem(502, "The upstream's answer is not valid HTTP.");
  if (unreachable.has(code)) return problem(502, "The upstream cannot be reached.");
  if (code === "ETIMEDOUT") return problem(504, "The upstream did not accept a connection in time.");
  if (/CERT|TLS|SSL/.test(code)) return problem(502, "The upstream's certificate is not valid, or it does not speak TLS.");
  return problem(502, "The upstream closed the connection before it answered.");
}

const unreachable = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOENT",
  "EACCES",
  "EADDRNOTAVAIL",
  "EMFILE",
]);

export function codeOf(error: unknown): string {
  return `${(error as NodeJS.ErrnoException | undefined)?.code ?? ""}`;
}

/** Logs failures of the upstream: one line a second for each reason, with a count, because a dead upstream fails every request. */
export class FailureLog {
  readonly #log: Logger;
  readonly #recent = new Map<string, { atMs: number; more: number }>();

  constructor(log: Logger) {
    this.#log = log;
  }

  write(error: unknown, message: string): void {
    const reason = error instanceof UpstreamTimeout ? error.message : codeOf(error) || (error as Error).message;
    const nowMs = performance.now();
    const last = this.#recent.get(reason);
    if (last !== undefined && nowMs - last.atMs < 1000) {
      last.more++;
      return;
    }
    this.#recent.set(reason, { atMs: nowMs, more: 0 });
    this.#log.warn({ reason, ...(last !== undefined && last.more > 0 && { moreSince: last.more }) }, message);
  }
}
