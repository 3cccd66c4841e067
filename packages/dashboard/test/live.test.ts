import { beforeEach, describe, expect, it } from "vitest";
import type { LiveFigures } from "../src/contract.js";
import { Refusal } from "../src/routes/json.js";
import { Live } from "../src/routes/live.js";
import type { Sink } from "../src/routes/view.js";

class FakeSink implements Sink {
  readonly sent: LiveFigures[] = [];
  ended = false;
  isStale = false;
  #closed: (() => void) | undefined;

  write(text: string): void {
    for (const [, data = ""] of text.matchAll(/^data: (.*)$/gm)) this.sent.push(JSON.parse(data));
  }

  end(): void {
    this.ended = true;
    this.#closed?.();
  }

  onClose(closed: () => void): void {
    this.#closed = closed;
  }
}

let nowMs: number;
let live: Live;

beforeEach(() => {
  nowMs = 0;
  live = new Live(() => nowMs);
});

function open(nowMs = 0): FakeSink {
  const sink = new FakeSink();
  const { body } = live.open(at(nowMs));
  if (typeof body === "function") body(sink);
  return sink;
}

/** Figures that have a time only. */
const at = (ms: number): LiveFigures => ({ overview: { nowMs: ms } }) as LiveFigures;

describe("a stream", () => {
  it("begins with the figures of now, and gets all figures each second", () => {
    const sink = open(1);
    live.send(at(2));
    const later = open(3);
    live.send(at(4));
    expect(sink.sent).toEqual([at(1), at(2), at(4)]);
    expect(later.sent).toEqual([at(3), at(4)]);
  });

  it("ends after ten minutes, so that authorize is asked again", () => {
    const sink = open();
    nowMs = 10 * 60_000 - 1;
    live.send(at(1));
    expect(sink.ended).toBe(false);
    nowMs++;
    live.send(at(2));
    expect([sink.ended, sink.sent.length, live.size]).toEqual([true, 2, 0]);
  });

  it("ends if its client reads too slowly", () => {
    const [slow, other] = [open(), open()];
    slow.isStale = true;
    live.send(at(1));
    expect([slow.ended, other.ended, other.sent.length]).toEqual([true, false, 2]);
  });

  it("that has ended takes no place, even if its client keeps the connection", () => {
    const sinks = Array.from({ length: 32 }, () => open());
    for (const sink of sinks) {
      sink.isStale = true;
      sink.onClose(() => undefined);
    }
    live.send(at(1));
    expect(sinks.every(({ ended }) => ended)).toBe(true);
    expect(live.size).toBe(0);
  });

  it("is refused if 32 are open, also if they open at the same moment", () => {
    const answers = Array.from({ length: 40 }, () => live.open(at(0)));
    const sinks = answers.map(({ body }) => {
      const sink = new FakeSink();
      if (typeof body === "function") body(sink);
      return sink;
    });
    expect(sinks.filter(({ ended }) => !ended)).toHaveLength(32);
    expect(() => live.open(at(0))).toThrow(Refusal);
  });
});
