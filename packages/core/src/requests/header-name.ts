/** Whether a header can have this name: a token (RFC 9110 §5.6.2). */
export function isHeaderName(name: unknown): name is string {
  return typeof name === "string" && /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name);
}
