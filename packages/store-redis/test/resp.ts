/** A reply. An error inside an array is a value; an error as the whole reply rejects the command. */
export type Reply = string | number | null | ReplyError | Reply[];

/** An error reply; its first word is the code. */
export class ReplyError extends Error {
  override readonly name: string = "ReplyError";
}

/** Decodes the reply at an offset; returns it with its end, or undefined while it is incomplete. */
export function decodeReply(bytes: Buffer, at: number): { reply: Reply; end: number } | undefined {
  const lineEnd = bytes.indexOf("\r\n", at);
  if (lineEnd === -1) return undefined;
  const type = String.fromCharCode(bytes[at] as number);
  const line = bytes.toString("utf8", at + 1, lineEnd);
  const start = lineEnd + 2;
  switch (type) {
    case "+":
      return { reply: line, end: start };
    case "-":
      return { reply: new ReplyError(line), end: start };
    case ":":
      return { reply: Number(line), end: start };
    case "$":
      return decodeBulk(bytes, start, Number(line));
    case "*":
      return decodeArray(bytes, start, Number(line));
    default:
      throw new Error(`A reply begins with ${JSON.stringify(type)}, which is not Redis' protocol.`);
  }
}

function decodeBulk(bytes: Buffer, start: number, length: number): { reply: Reply; end: number } | undefined {
  if (length === -1) return { reply: null, end: start };
  const end = start + length;
  return bytes.length < end + 2 ? undefined : { reply: bytes.toString("utf8", start, end), end: end + 2 };
}

function decodeArray(bytes: Buffer, start: number, length: number): { reply: Reply; end: number } | undefined {
  if (length === -1) return { reply: null, end: start };
  const items: Reply[] = [];
  let end = start;
  while (items.length < length) {
    const item = decodeReply(bytes, end);
    if (item === undefined) return undefined;
    items.push(item.reply);
    end = item.end;
  }
  return { reply: items, end };
}
