import * as fc from "fast-check";
import { expect, test } from "vitest";
import { decodeReply, type Reply, ReplyError } from "./resp.js";

/** Replies and their bytes, from the protocol's specification. */
interface Written {
  readonly reply: Reply;
  readonly bytes: Buffer;
}

const line = fc.string({ unit: fc.constantFrom(..."aZ 0é€") });
const simple = line.map((text): Written => ({ reply: text, bytes: Buffer.from(`+${text}\r\n`) }));
const error = line.map((text): Written => ({ reply: new ReplyError(text), bytes: Buffer.from(`-${text}\r\n`) }));
const integer = fc.maxSafeInteger().map((number): Written => ({ reply: number, bytes: Buffer.from(`:${number}\r\n`) }));
const bulk = fc
  .string({ unit: fc.constantFrom("\r", "\n", "\0", "$", "*", "a", "€") })
  .map((text): Written => ({ reply: text, bytes: Buffer.from(`$${Buffer.byteLength(text)}\r\n${text}\r\n`) }));
const nothing = fc.constantFrom("$-1\r\n", "*-1\r\n").map((text): Written => ({ reply: null, bytes: Buffer.from(text) }));
const replies = fc.letrec<{ reply: Written }>((tie) => ({
  reply: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    simple,
    error,
    integer,
    bulk,
    nothing,
    fc.array(tie("reply"), { maxLength: 4 }).map(
      (items): Written => ({
        reply: items.map((item) => item.reply),
        bytes: Buffer.concat([Buffer.from(`*${items.length}\r\n`), ...items.map((item) => item.bytes)]),
      }),
    ),
  ),
})).reply;

test("a reply is read only when it is complete", () => {
  fc.assert(
    fc.property(replies, fc.uint8Array({ maxLength: 5 }), ({ reply, bytes }, next) => {
      for (let length = 0; length < bytes.length; length++) expect(decodeReply(bytes.subarray(0, length), 0)).toBeUndefined();
      expect(decodeReply(Buffer.concat([bytes, next]), 0)).toEqual({ reply, end: bytes.length });
    }),
  );
});

test("bytes that are not the protocol are detected", () => {
  expect(() => decodeReply(Buffer.from("HTTP/1.1 400\r\n"), 0)).toThrow('begins with "H"');
});
