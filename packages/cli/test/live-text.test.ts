import { describe, expect, it } from "vitest";
import type { Io } from "../src/io.js";
import { table } from "../src/output/format.js";
import { LiveText } from "../src/output/live-text.js";

function terminal(): { io: Io; written: string[] } {
  const written: string[] = [];
  return { io: { out: (text: string) => written.push(text), hasColors: false } as unknown as Io, written };
}

describe("a text that is drawn over the one before it", () => {
  it("lets the terminal cut its lines, which may have wide characters and colours", () => {
    const { io, written } = terminal();
    const wide = "漢".repeat(500);
    new LiveText(io).draw(`${wide}\n\u001b[1mbold\u001b[22m`);
    expect(written).toEqual([`\u001b[?7l${wide}\n\u001b[1mbold\u001b[22m\u001b[?7h\n`]);
  });

  it("moves up by the lines that it has drawn", () => {
    const { io, written } = terminal();
    const live = new LiveText(io);
    live.draw("one\ntwo");
    live.draw("three");
    live.clear();
    expect(written.slice(1)).toEqual(["\u001b[2A\u001b[J", "\u001b[?7lthree\u001b[?7h\n", "\u001b[1A\u001b[J"]);
  });
});

it("a table may have very many rows", () => {
  const rows = Array.from({ length: 300_000 }, () => ["key"]);
  expect(table(terminal().io, ["key"], rows)).toHaveLength("  key\n".length * (rows.length + 1));
});
