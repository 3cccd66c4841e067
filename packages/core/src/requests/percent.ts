/** Globals of every runtime. */
declare const TextEncoder: new () => { encode(text: string): Uint8Array };
declare const TextDecoder: new (encoding: "utf-8", options: { ignoreBOM: true }) => { decode(bytes: Uint8Array): string };

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Decodes percent-encoding. Bytes that are not UTF-8 become U+FFFD; a `%` that encodes nothing stays. */
export function decoded(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return ofBytes(encoder.encode(text));
  }
}

/** The same, for a text whose characters stand for one byte each. */
export function decodedBytes(text: string): string {
  return ofBytes(Uint8Array.from(text, (character) => character.charCodeAt(0)));
}

/** Puts a control character in place of each encoded slash (1) and backslash (2), so that decoding keeps them apart from others. */
export function withMarks(path: string): string {
  if (!path.includes("%")) return path;
  return path.replace(/%2f/gi, "\x01").replace(/%5c/gi, "\x02");
}

function ofBytes(bytes: Uint8Array): string {
  let end = 0;
  for (let i = 0; i < bytes.length; i++) {
    const high = bytes[i] === 0x25 ? digit(bytes[i + 1]) : -1;
    const low = high < 0 ? -1 : digit(bytes[i + 2]);
    if (low < 0) bytes[end++] = bytes[i] as number;
    else {
      bytes[end++] = high * 16 + low;
      i += 2;
    }
  }
  return decoder.decode(bytes.subarray(0, end));
}

/** The value of a hexadecimal digit; -1 for any other character. */
function digit(character: number | undefined): number {
  return character === undefined ? -1 : "0123456789abcdef".indexOf(String.fromCharCode(character).toLowerCase());
}
