import { createReadStream } from "node:fs";
import * as zlib from "node:zlib";
import type { FloodgateError } from "@floodgate/core";
import { invalidOption } from "@floodgate/core/rules";

/** A log: a file, or a stream such as standard input. */
export interface LogSource {
  readonly name: string;
  /** Opens it at its start. A file may be opened more than once. */
  open(): AsyncIterable<Uint8Array>;
  /** Whether `open` works only once. */
  readonly once?: boolean;
}

/** How much of a file is read at once. */
const chunkBytes = 256 * 1024;
/** How much is decompressed at once. */
const pieceBytes = 16 * 1024;

export function fileSource(path: string): LogSource {
  return { name: path, open: () => createReadStream(path, { highWaterMark: chunkBytes }) };
}

/** Node.js reads zstd from version 22.15 on, which is newer than the types that this is compiled with. */
const { createZstdDecompress } = zlib as typeof zlib & { createZstdDecompress?: () => zlib.Gunzip };

/** Compressions by their first bytes: a decoder, or the program that decompresses them. */
const compressions = [
  { magic: "\x1f\x8b", name: "gzip", program: "gzip -dc", decoder: zlib.createGunzip },
  { magic: "\x28\xb5\x2f\xfd", name: "zstd", program: "zstd -dc", decoder: createZstdDecompress },
  { magic: "\xfd7zX", name: "xz", program: "xz -dc", decoder: undefined },
  { magic: "BZh", name: "bzip2", program: "bzip2 -dc", decoder: undefined },
  { magic: "PK\x03\x04", name: "zip", program: "unzip -p", decoder: undefined },
] as const;

/**
 * The bytes of a log, decompressed if they are gzip or zstd. `told` is called with the number of bytes that each chunk had in the file.
 * @throws FloodgateError if Node.js cannot decompress it.
 */
export async function* bytesOf(source: LogSource, told: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  const chunks = chunksOf(source, told);
  try {
    const { value: first = new Uint8Array() } = await chunks.next();
    const all = startingWith(first, chunks);
    const start = Buffer.from(first.subarray(0, 4)).toString("latin1");
    const found = compressions.find(({ magic }) => start.startsWith(magic));
    if (found === undefined) yield* all;
    else if (found.decoder !== undefined) yield* decompressed(all, found.decoder());
    else throw undecodable(source, found);
  } finally {
    // Whoever stops at the first chunk has not begun the rest.
    await chunks.return(undefined);
  }
}

function undecodable({ name, once }: LogSource, { name: compression, program }: (typeof compressions)[number]): FloodgateError {
  const isZstd = compression === "zstd";
  const reads = isZstd ? `reads from version 22.15 on; this is ${process.version}` : "does not read";
  const what = `${name} is compressed with ${compression}, which Node.js ${reads}.`;
  const file = once === true ? "" : ` ${name}`;
  return invalidOption(`${what} Write ${program}${file} | floodgate simulate -${isZstd ? ", or use a newer Node.js" : ""}.`);
}

/** The chunks of a log. The first ones come as one, until there are enough bytes to tell what they are. */
async function* chunksOf(source: LogSource, told: (bytes: number) => void): AsyncGenerator<Uint8Array, undefined> {
  let first: Uint8Array | undefined = new Uint8Array();
  for await (const chunk of source.open()) {
    told(chunk.length);
    const ready: Uint8Array = first === undefined ? chunk : Buffer.concat([first, chunk]);
    first = first === undefined || ready.length >= 4 ? undefined : ready;
    if (first === undefined) yield ready;
  }
  if (first !== undefined) yield first;
}

async function* startingWith(first: Uint8Array, rest: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  if (first.length > 0) yield first;
  yield* rest;
}

/** Yields all that could be decompressed before it throws: of a truncated file, what there is of it. */
async function* decompressed(chunks: AsyncIterable<Uint8Array>, decoder: zlib.Gunzip): AsyncGenerator<Uint8Array> {
  let out: Uint8Array[] = [];
  let failure: Error | undefined;
  const take = (): Uint8Array[] => {
    const taken = out;
    out = [];
    return taken;
  };
  decoder.on("data", (chunk) => out.push(chunk));
  decoder.on("error", (error) => {
    failure = error;
  });
  const closed = new Promise<void>((resolve) => decoder.once("close", resolve));
  try {
    for await (const chunk of chunks) {
      // Nothing is read ahead, so that no data is lost if the decoder fails; in small pieces, because each may become a thousand times as large.
      for (let from = 0; from < chunk.length && failure === undefined; from += pieceBytes) {
        await new Promise<void>((resolve) => decoder.write(chunk.subarray(from, from + pieceBytes), () => resolve()));
        yield* take();
      }
      if (failure !== undefined) break;
    }
    decoder.end();
    await closed;
    yield* take();
  } finally {
    decoder.destroy();
  }
  if (failure !== undefined) throw failure;
}
