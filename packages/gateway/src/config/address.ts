import { isIP } from "node:net";

/** Where a server listens. Port 0 is any free port. */
export type ListenAddress = { readonly host: string; readonly port: number } | { readonly path: string };

/** Parses `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`, `:8080` (all addresses) or `unix:/path`. */
export function parseAddress(text: string): ListenAddress | undefined {
  if (isUnix(text)) {
    const path = text.slice("unix:".length);
    return path === "" || path.includes("\0") ? undefined : { path };
  }
  const [, bracketed, plain = "", digits] = /^(?:\[([^\]]*)\]|([^:[\]/]*)):(\d{1,5})$/.exec(text) ?? [];
  if (digits === undefined || Number(digits) > 65535) return undefined;
  if (bracketed !== undefined) return isIP(bracketed) === 6 ? { host: bracketed, port: Number(digits) } : undefined;
  return /^[\w.-]*$/.test(plain) ? { host: plain === "" ? "::" : plain, port: Number(digits) } : undefined;
}

/** Whether an address is that of a Unix socket. */
export function isUnix(address: string): boolean {
  return address.startsWith("unix:");
}
