import { Reader, Writer } from "protobufjs/minimal";

/**
 * The messages of `envoy.service.ratelimit.v3`, with the field numbers of Envoy's rls.proto, ratelimit.proto and base.proto. Unknown fields
 * are skipped.
 */

/** An entry of a descriptor. */
export interface EntryMessage {
  key: string;
  value: string;
}

/** `envoy.extensions.common.ratelimit.v3.RateLimitDescriptor` */
export interface DescriptorMessage {
  readonly entries: EntryMessage[];
  /** Whether Envoy sends a limit of its own. */
  overridesLimit: boolean;
  /** Undefined: that of the request counts. */
  hitsAddend: number | undefined;
  isNegativeHits: boolean;
}

/** `envoy.service.ratelimit.v3.RateLimitRequest` */
export interface RequestMessage {
  domain: string;
  readonly descriptors: DescriptorMessage[];
  hitsAddend: number;
}

export const code = { ok: 1, overLimit: 2 } as const;

/** `RateLimitResponse.RateLimit.Unit` */
export const unit = { unknown: 0, second: 1, minute: 2, hour: 3, day: 4, month: 5, year: 6, week: 7 } as const;

/** `RateLimitResponse.RateLimit` */
export interface LimitMessage {
  readonly requestsPerUnit: number;
  readonly unit: number;
  readonly name: string;
}

/** `RateLimitResponse.DescriptorStatus` */
export interface StatusMessage {
  readonly code: number;
  readonly currentLimit: LimitMessage | undefined;
  readonly limitRemaining: number;
  readonly untilResetMs: number | undefined;
}

/** `envoy.service.ratelimit.v3.RateLimitResponse` */
export interface ResponseMessage {
  readonly overallCode: number;
  readonly statuses: readonly StatusMessage[];
  /** Names and values. */
  readonly responseHeaders: readonly (readonly [string, string])[];
  /** Undefined unless the request is over limit. */
  readonly rawBody: string | undefined;
}

/** @throws Error if the bytes are no such message. */
export function decodeRequest(bytes: Uint8Array): RequestMessage {
  const message: RequestMessage = { domain: "", descriptors: [], hitsAddend: 0 };
  eachField(Reader.create(bytes), undefined, (reader, field) => {
    if (field === 1) message.domain = reader.string();
    else if (field === 2) message.descriptors.push(decodeDescriptor(reader));
    else if (field === 3) message.hitsAddend = reader.uint32();
    else return false;
    return true;
  });
  return message;
}

function decodeDescriptor(outer: Reader): DescriptorMessage {
  const message: DescriptorMessage = { entries: [], overridesLimit: false, hitsAddend: undefined, isNegativeHits: false };
  eachField(outer, outer.uint32(), (reader, field) => {
    if (field === 1) message.entries.push(decodeEntry(reader));
    else if (field === 2) {
      message.overridesLimit = true;
      return false;
    } else if (field === 3) message.hitsAddend = decodeWrapped(reader);
    else if (field === 4) message.isNegativeHits = reader.bool();
    else return false;
    return true;
  });
  return message;
}

function decodeEntry(outer: Reader): EntryMessage {
  const message: EntryMessage = { key: "", value: "" };
  eachField(outer, outer.uint32(), (reader, field) => {
    if (field === 1) message.key = reader.string();
    else if (field === 2) message.value = reader.string();
    else return false;
    return true;
  });
  return message;
}

/** `google.protobuf.UInt64Value`. What no number holds exactly is the largest that one does: no limit allows that much. */
function decodeWrapped(outer: Reader): number {
  let value = 0;
  eachField(outer, outer.uint32(), (reader, field) => {
    if (field !== 1) return false;
    value = Math.min(Number(reader.uint64()), Number.MAX_SAFE_INTEGER);
    return true;
  });
  return value;
}

/** @param read reads the field with this number, or answers false without reading. @param length undefined: to the end. */
function eachField(reader: Reader, length: number | undefined, read: (reader: Reader, field: number) => boolean): void {
  const end = length === undefined ? reader.len : reader.pos + length;
  if (end > reader.len) throw new RangeError("The message is longer than its bytes.");
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (!read(reader, tag >>> 3)) reader.skipType(tag & 7);
  }
  if (reader.pos !== end) throw new RangeError("A field is longer than its message.");
}

export function encodeResponse({ overallCode, statuses, responseHeaders, rawBody }: ResponseMessage): Buffer {
  const writer = Writer.create();
  writer.uint32(tag(1, varint)).int32(overallCode);
  for (const status of statuses) encodeStatus(status, writer.uint32(tag(2, bytes)).fork()).ldelim();
  for (const [name, value] of responseHeaders) {
    const header = writer.uint32(tag(3, bytes)).fork();
    header.uint32(tag(1, bytes)).string(name).uint32(tag(2, bytes)).string(value).ldelim();
  }
  if (rawBody !== undefined) writer.uint32(tag(5, bytes)).bytes(Buffer.from(rawBody));
  return writer.finish() as Buffer;
}

function encodeStatus({ code, currentLimit, limitRemaining, untilResetMs }: StatusMessage, writer: Writer): Writer {
  writer.uint32(tag(1, varint)).int32(code);
  if (currentLimit !== undefined) {
    const limit = writer.uint32(tag(2, bytes)).fork();
    limit.uint32(tag(1, varint)).uint32(currentLimit.requestsPerUnit);
    if (currentLimit.unit !== unit.unknown) limit.uint32(tag(2, varint)).int32(currentLimit.unit);
    limit.uint32(tag(3, bytes)).string(currentLimit.name).ldelim();
  }
  if (limitRemaining !== 0) writer.uint32(tag(3, varint)).uint32(limitRemaining);
  if (untilResetMs !== undefined) {
    const duration = writer.uint32(tag(4, bytes)).fork();
    const seconds = Math.floor(untilResetMs / 1000);
    if (seconds !== 0) duration.uint32(tag(1, varint)).int64(seconds);
    const nanos = (untilResetMs - seconds * 1000) * 1_000_000;
    if (nanos !== 0) duration.uint32(tag(2, varint)).int32(nanos);
    duration.ldelim();
  }
  return writer;
}

/** Wire types. */
const varint = 0;
const bytes = 2;

function tag(field: number, wireType: number): number {
  return (field << 3) | wireType;
}
