import { parse } from "protobufjs";

/** The used part of Envoy's rls.proto, ratelimit.proto and base.proto, and of gRPC's health.proto. Unknown fields are skipped. */
const { root } = parse(`
  syntax = "proto3";

  message RateLimitRequest { string domain = 1; repeated Descriptor descriptors = 2; uint32 hits_addend = 3; }
  message Descriptor { repeated Entry entries = 1; RateLimit limit = 2; UInt64Value hits_addend = 3; bool is_negative_hits = 4; }
  message Entry { string key = 1; string value = 2; }
  message UInt64Value { uint64 value = 1; }

  message RateLimitResponse { int32 overall_code = 1; repeated Status statuses = 2; repeated Entry response_headers = 3; bytes raw_body = 5; }
  message Status { int32 code = 1; RateLimit current_limit = 2; uint32 limit_remaining = 3; Duration until_reset = 4; }
  message RateLimit { uint32 requests_per_unit = 1; int32 unit = 2; string name = 3; }
  message Duration { int64 seconds = 1; int32 nanos = 2; }

  message HealthCheckRequest { string service = 1; }
  message HealthCheckResponse { int32 status = 1; }
`);

/** `envoy.extensions.common.ratelimit.v3.RateLimitDescriptor` */
interface DescriptorMessage {
  readonly entries: readonly EntryMessage[];
  /** Envoy's own limit, if it sends one. */
  readonly limit: object | null;
  /** If it is missing, that of the request counts. The value is a `Long`. */
  readonly hitsAddend: { readonly value: unknown } | null;
  readonly isNegativeHits: boolean;
}

/** An entry of a descriptor. */
interface EntryMessage {
  readonly key: string;
  readonly value: string;
}

/** `envoy.service.ratelimit.v3.RateLimitRequest` */
export interface RequestMessage {
  readonly domain: string;
  readonly descriptors: readonly DescriptorMessage[];
  readonly hitsAddend: number;
}

/** How grpc-js reads and writes the messages of a call. Decoding throws if the bytes are no such message. */
export function codecOf(request: string, response: string) {
  const [requests, responses] = [root.lookupType(request), root.lookupType(response)];
  return {
    requestSerialize: (message: object): Buffer => requests.encode(message).finish() as Buffer,
    requestDeserialize: (bytes: Buffer): object => requests.decode(bytes),
    responseSerialize: (message: object): Buffer => responses.encode(message).finish() as Buffer,
    responseDeserialize: (bytes: Buffer): object => responses.decode(bytes),
  };
}
