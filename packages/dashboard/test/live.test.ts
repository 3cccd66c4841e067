import { beforeEach, describe, expect, it } from "vitest";
import type { LiveFigures } from "../src/contract.js";
import { Refusal } from "../src/routes/json.js";
import { Live } from "../src/routes/live.js";
import type { View } from "../src/routes/view.js";

let nowMs: number;
let live: Live;
let isClosing: boolean;

beforeEach(() => {
  nowMs = 0;
  isClosing = false;
  live = new Live(() => nowMs);
});

type Reader = ReadableStreamDefaultReader<Uint8Array>;

const open = (ms = 0): Reader => (live.open({ isClosing: () => isClosing } as View, at(ms)).body as ReadableStream<Uint8Array>).getReader();

/** Figures that have a time, and a title of a length. */
const at = (ms: number, length = 0): LiveFigures => ({ overview: { nowMs: ms, title: "x".repeat(length) } }) as LiveFigures;

/** The figures of the next event; undefined if the stream has ended. */
async function next(reader: Reader): Promise<LiveFigures | undefined> {
  const { value } = await reader.read();
  const [, data] = /^data: (.*)$/m.exec(Buffer.from(value ?? []).toString()) ?? [];
  return data === undefined ? undefined : JSON.parse(data);
}

describe("a stream", () => {
  it("begins with the figures of now, and gets all figures each second", async () => {
    const stream = open(1);
    live.send(at(2));
    const later = open(3);
    live.send(at(4));
    expect([await next(stream), await next(stream), await next(stream)]).toEqual([at(1), at(2), at(4)]);
    expect([await next(later), await next(later)]).toEqual([at(3), at(4)]);
  });

  it("ends after ten minutes, so that authorize is asked again", async () => {
    const stream = open();
    nowMs = 10 * 60_000 - 1;
    live.send(at(1));
    expect(live.size).toBe(1);
    nowMs++;
    live.send(at(2));
    expect(live.size).toBe(0);
    expect([await next(stream), await next(stream), await next(stream)]).toEqual([at(0), at(1), undefined]);
  });

  it("ends when the server takes no new connections", async () => {
    const stream = open();
    isClosing = true;
    live.send(at(1));
    expect([await next(stream), await next(stream)]).toEqual([at(0), undefined]);
  });

  it("that its client reads too slowly is cut off, takes no place, and keeps nothing in memory", async () => {
    const [slow, other] = [open(), open()];
    for (let second = 1; second <= 3; second++) {
      await next(other);
      live.send(at(second, 600_000));
    }
    expect(live.size).toBe(1);
    await expect(next(slow)).rejects.toThrow("too slowly");
    expect(await next(other)).toEqual(at(3, 600_000));
  });

  it("may have figures that are longer than a slow client may leave unread", async () => {
    const stream = open();
    await next(stream);
    for (let second = 1; second <= 3; second++) {
      live.send(at(second, 1_500_000));
      expect(await next(stream)).toEqual(at(second, 1_500_000));
    }
  });

  it("whose client has left takes no place", async () => {
    await open().cancel();
    expect(live.size).toBe(0);
  });

  it("is refused if 32 are open", () => {
    for (let i = 0; i < 32; i++) open();
    expect(() => open()).toThrow(Refusal);
  });
});
