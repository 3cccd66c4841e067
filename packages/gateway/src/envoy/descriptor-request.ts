import { type Descriptor, entryValue } from "@floodgate/core/adapter";
import type { GatewayRequest } from "../service/request.js";
import type { RequestMessage } from "./messages.js";

/** A descriptor as rules see it. It has no method, path or headers, and no rule for descriptors reads them. */
function requestOf(descriptor: Descriptor): GatewayRequest {
  return {
    method: "",
    target: "",
    host: undefined,
    remoteAddress: undefined,
    // Envoy's action `remote_address` sends the address that Envoy trusts.
    clientIp: entryValue(descriptor, "remote_address"),
    fromTrustedPeer: true,
    descriptor,
    header: () => undefined,
  };
}

/** Beyond this, a call would make one step of the store too long. */
const maxDescriptors = 256;
const maxEntries = 256;

/** Why a request is refused, or a request for each descriptor. */
export function descriptorRequests({ domain, descriptors, hitsAddend }: RequestMessage): string | GatewayRequest[] {
  if (domain === "") return "`domain` is empty. Set it in the filter's configuration.";
  if (descriptors.length === 0) return "`descriptors` is empty.";
  if (descriptors.length > maxDescriptors)
    return `\`descriptors\` has ${descriptors.length} descriptors, above the maximum of ${maxDescriptors}.`;
  for (const { entries, limit, isNegativeHits } of descriptors) {
    if (entries.length > maxEntries) return `A descriptor has ${entries.length} entries, above the maximum of ${maxEntries}.`;
    if (limit !== null)
      return "A descriptor has a `limit` of its own. Limits are written in the rules. Remove `limit` from the rate limit in Envoy.";
    if (isNegativeHits) return "A descriptor has `is_negative_hits`, but nothing can be given back without its charge. Remove it.";
  }
  // Envoy sends the same call when a stream is done as before it began, so an entry says that its hits have happened.
  // In a request, 0 hits are those of an Envoy that does not say: one. In a descriptor, they look without charging.
  const shared = Math.max(1, hitsAddend);
  const all = descriptors.map(({ entries, hitsAddend }) => {
    const isUsage = entries.some(({ key, value }) => key === "floodgate" && value === "charge");
    return requestOf({ domain, entries, hits: hitsAddend === null ? shared : wholeOf(hitsAddend.value), isUsage });
  });
  if (new Set(all.map(({ descriptor }) => descriptor?.isUsage)).size === 1) return all;
  return "Descriptors with and without the entry `floodgate: charge` are in one call. Set `apply_on_stream_done` on the rate limits with that entry.";
}

/** What no number holds exactly is the largest that one does: no limit allows that much. */
function wholeOf(long: unknown): number {
  return Math.min(Number(long), Number.MAX_SAFE_INTEGER);
}
