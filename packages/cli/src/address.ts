import { ipKey } from "@floodgate/core/rules";
import { Failure } from "./failure.js";

/**
 * The address of a client that a text says; of what IPv6 is counted as (`2001:db8:0:100::/56`), the first.
 * @param shown what the failure says in place of a text that may be a secret.
 * @throws Failure where it says none.
 */
export function clientAddress(text: string, ipv6Prefix: number, shown: string = JSON.stringify(text)): string {
  const suffix = `/${ipv6Prefix}`;
  const address = text.endsWith(suffix) ? text.slice(0, -suffix.length) : text;
  if (ipKey(address, ipv6Prefix) !== undefined) return address;
  throw new Failure("usage", `${shown} is no address. Write 203.0.113.9 or 2001:db8::1.`);
}
