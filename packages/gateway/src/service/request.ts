import { FloodgateError } from "@floodgate/core";
import { type Descriptor, type RequestReader, sentPath } from "@floodgate/core/adapter";
import { descriptorRules } from "@floodgate/core/rules";

/** A request as rules see it, whoever sent it. */
export interface GatewayRequest {
  readonly method: string;
  /** As it was sent, with its query string. */
  readonly target: string;
  readonly host: string | undefined;
  /** The value of a header; several lines are joined by ", ". */
  header(lowerCaseName: string): string | undefined;
  /** The same of the upstream's response, once there is one. */
  responseHeader?(lowerCaseName: string): string | undefined;
  /** The address at the other end of the connection; undefined for a Unix socket. */
  readonly remoteAddress: string | undefined;
  /** The client's address: what a trusted peer says, else the peer itself. */
  readonly clientIp: string | undefined;
  /** Whether the peer is one of `trustedPeers`. Only then are the names in `keys` read. */
  readonly fromTrustedPeer: boolean;
  /** What Envoy's rate limit service is asked about; undefined for an HTTP request. */
  readonly descriptor?: Descriptor;
}

export const gatewayReader: RequestReader<GatewayRequest> = {
  method: ({ method }) => method,
  path: ({ target }) => sentPath(target),
  header: (request, name) => request.header(name),
  remoteAddress: ({ remoteAddress }) => remoteAddress,
  clientIp: ({ clientIp }) => clientIp,
  trustsProxy: ({ fromTrustedPeer }) => fromTrustedPeer,
  route: () => undefined,
  descriptors: { ...descriptorRules, of: ({ descriptor }) => descriptor },
};

/** The proxy sees the responses too. `settle: header:x-cost` charges what the upstream says; without the header nothing changes. */
export const proxyReader: RequestReader<GatewayRequest> = {
  ...gatewayReader,
  // No descriptor comes here. Its rules were checked when they were read, without defaults such as `refundStatus`, which are not for them.
  descriptors: { ...descriptorRules, checkRule: () => undefined, of: ({ descriptor }) => descriptor },
  cost: (source) => {
    const [, name] = /^header:([!#$%&'*+.^_`|~\w-]+)$/.exec(source) ?? [];
    return name === undefined ? undefined : (request) => costOf(name, request.responseHeader?.(name.toLowerCase()));
  },
};

function costOf(header: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d{1,15}$/.test(value)) return Number(value);
  throw new FloodgateError(
    "FLOODGATE_INVALID_COST",
    `The header ${header} of the upstream's response must be a whole number of at least 0, but was ${JSON.stringify(value)}.`,
  );
}
