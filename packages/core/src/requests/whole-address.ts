import { formatIp, parseIp } from "../support/ip.js";
import { isPromise } from "../support/promises.js";
import type { Meeting } from "./meeting.js";

/** Whether a text is the client's whole IPv6 address: one client has 2^64 of these or more. False if that is not certain. */
export function isWholeIpv6<Req>(meeting: Meeting<Req>, text: string): boolean {
  const ip = parseIp(text);
  if (ip === undefined) return false;
  const plain = formatIp(ip);
  // An IPv4 address, however it is written, is one client.
  if (!plain.includes(":")) return false;
  try {
    const own = meeting.address();
    if (isPromise(own)) own.then(undefined, () => undefined);
    const parsed = typeof own === "string" ? parseIp(own) : undefined;
    return parsed !== undefined && formatIp(parsed) === plain;
  } catch {
    return false;
  }
}
