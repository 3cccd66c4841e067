import { type Answer, problem } from "./answer.js";

/** The upstream took too long. */
export class UpstreamTimeout extends Error {
  readonly phase: "connect" | "answer";

  constructor(phase: "connect" | "answer") {
    super(phase === "connect" ? "The upstream did not accept a connection in time." : "The upstream did not answer in time.");
    this.phase = phase;
  }
}

/** The upstream's answer is valid HTTP, but none to the request. */
export class InvalidAnswer extends Error {}

/** What the client is told if the upstream fails. Addresses and details of the network stay in the log. */
export function failureAnswer(error: unknown): Answer {
  if (error instanceof UpstreamTimeout) return problem(504, error.message);
  const code = codeOf(error);
  // Node's parser refuses to read it, or its writer to pass it on.
  if (error instanceof InvalidAnswer || /^(?:HPE_|ERR_HTTP_|ERR_INVALID_)/.test(code))
    return problem(502, "The upstream's answer is not valid HTTP.");
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

/** What failures are grouped by in the log: a dead upstream fails every request. */
export function reasonOf(error: unknown): string {
  return error instanceof UpstreamTimeout ? error.message : codeOf(error) || (error as Error).message;
}
