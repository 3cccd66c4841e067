import { beforeEach, describe, expect, it } from "vitest";
import type { Overview, Tick } from "../src/contract.js";
import { Refusal } from "../src/routes/json.js";
import { Live } from "../src/routes/live.js";
import type { Sink } from "../src/routes/view.js";

class FakeSink implements Sink {
  readonly ticks: Tick[] = [];
  ended = false;
  isStale = false;
  #closed: (() => void) | undefined;

  write(text: string): void {
    for (const [, data = ""] of text.matchAll(/^data: (.*)$/gm)) this.ticks.push(JSON.parse(data));
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

function open(): FakeSink {
  const sink = new FakeSink();
  const { body } = live.open();
  if (typeof body === "function") body(sink);
  return sink;
}

const overview = (parts: Partial<Overview>): Overview => ({ rules: [], totals: [], ...parts }) as Overview;
const second = (at: number, counts: Tick["counts"] = []) => ({ second: at, counts });

describe("a stream", () => {
  it("gets each second, and what has changed with the last of them", () => {
    const sink = open();
    const counts = [{ rule: "api", counts: { allowed: 2 } }];
    live.tick([second(5), second(6, counts)], overview({ title: "no member of a tick" }));
    live.tick([second(7)], overview({ sources: [{ id: "a", name: "a" }] }));
    live.tick([second(8)], overview({ sources: [{ id: "a", name: "a" }] }));
    expect(sink.ticks).toEqual([
      { secondMs: 5000, counts: [], changed: {} },
      { secondMs: 6000, counts, changed: { rules: [], totals: [] } },
      { secondMs: 7000, counts: [], changed: { sources: [{ id: "a", name: "a" }] } },
      { secondMs: 8000, counts: [], changed: {} },
    ]);
  });

  it("that begins later gets everything with its first second", () => {
    open();
    live.tick([second(1)], overview({}));
    const later = open();
    live.tick([second(2)], overview({}));
    expect(later.ticks).toEqual([{ secondMs: 2000, counts: [], changed: { rules: [], totals: [] } }]);
  });

  it("ends after ten minutes, so that authorize is asked again", () => {
    const sink = open();
    nowMs = 10 * 60_000 - 1;
    live.tick([second(1)], overview({}));
    expect(sink.ended).toBe(false);
    nowMs++;
    live.tick([second(2)], overview({}));
    expect([sink.ended, sink.ticks.length, live.size]).toEqual([true, 1, 0]);
  });

  it("ends if its client reads too slowly", () => {
    const [slow, other] = [open(), open()];
    slow.isStale = true;
    live.tick([second(1)], overview({}));
    expect([slow.ended, other.ended, other.ticks.length]).toEqual([true, false, 1]);
  });

  it("that has ended takes no place, even if its client keeps the connection", () => {
    const sinks = Array.from({ length: 32 }, open);
    for (const sink of sinks) {
      sink.isStale = true;
      sink.onClose(() => undefined);
    }
    live.tick([second(1)], overview({}));
    expect(sinks.every(({ ended }) => ended)).toBe(true);
    expect(live.size).toBe(0);
  });

  it("is refused if 32 are open, also if they open at the same moment", () => {
    const answers = Array.from({ length: 40 }, () => live.open());
    const sinks = answers.map(({ body }) => {
      const sink = new FakeSink();
      if (typeof body === "function") body(sink);
      return sink;
    });
    expect(sinks.filter(({ ended }) => !ended)).toHaveLength(32);
    expect(() => live.open()).toThrow(Refusal);
  });
});
