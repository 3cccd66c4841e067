// How the upstream fails, and what its clients are told.

/** The upstream took too long. */
export class UpstreamTimeout extends Error {
  constructor(phase: "connect" | "answer") {
    super(phase === "connect" ? "The upstream did not accept a connection in time." : "The upstream did not answer in time.");
  }
}

/** The upstream's answer is valid HTTP, but none to the request. */
export class InvalidAnswer extends Error {}

/** What the client is told if the upstream fails. Addresses and details of the network stay in the log. */
export function failureOf(error: unknown): readonly [status: number, detail: string] {
  if (error instanceof UpstreamTimeout) return [504, error.message];
  const code = codeOf(error);
  // Node's parser refuses to read it, or its writer to pass it on.
  if (error instanceof InvalidAnswer || /^(?:HPE_|ERR_HTTP_|ERR_INVALID_)/.test(code))
    return [502, "The upstream's answer is not valid HTTP."];
  if (/^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ENOENT|EACCES|EADDRNOTAVAIL|EMFILE)$/.test(code))
    return [502, "The upstream cannot be reached."];
  if (code === "ETIMEDOUT") return [504, "The upstream did not accept a connection in time."];
  if (/CERT|TLS|SSL|SIGNATURE|INVALID_(?:CA|PURPOSE)/.test(code))
    return [502, "The upstream's certificate is not valid, or it does not speak TLS."];
  return [502, "The upstream closed the connection before it answered."];
}

export function codeOf(error: unknown): string {
  return `${(error as NodeJS.ErrnoException | undefined)?.code ?? ""}`;
}

/** What failures are grouped by in the log: a dead upstream fails every request. */
export function kindOf(error: unknown): string {
  return error instanceof UpstreamTimeout ? error.message : codeOf(error) || (error as Error).message;
}
