import { randomBytes } from "node:crypto";
import * as zlib from "node:zlib";
import { describe, expect, it } from "vitest";
import { type LogSource, simulate, simulationText } from "../src/index.js";
import { lineAt, logOf, rules } from "./logs.js";

const perIp = rules("rules: [{ name: per-ip, limit: 1, window: 1m }]");
const good = [lineAt("192.0.2.1", 0), lineAt("192.0.2.1", 1)];
const plain = (_: string, text: string): string => text;

/** Logs with two good lines (the second is limited), and the messages about the other lines. */
const hostile: Record<string, { log: string | Uint8Array; skipped: number; notes: readonly (string | RegExp)[]; requests?: number }> = {
  "a line of a megabyte": {
    log: [good[0], `${good[1]}${"x".repeat(2 ** 20)}`, good[1]].join("\n"),
    skipped: 1,
    notes: ["1 of 3 lines is longer than 1 MiB. It was skipped."],
  },
  "a line of nearly a megabyte": {
    log: [good[0], lineAt("192.0.2.2", 0, undefined, "x".repeat(2 ** 20 - 200)), good[1]].join("\n"),
    skipped: 0,
    requests: 3,
    notes: [],
  },
  "broken dates": {
    log: [
      ...good,
      ...["31/Jun", "99/Nov", "20/Nov/2026:25", "--/---"].map((date) => good[1]?.replace(/20\/Nov(\/2026:12)?/, date) ?? ""),
    ].join("\n"),
    skipped: 4,
    notes: ["4 of 6 lines have no valid time. They were skipped."],
  },
  "binary between the lines": {
    log: Buffer.concat([Buffer.from(`${good[0]}\n`), Buffer.from([0, 255, 254, 27, 10, 0x80, 10]), Buffer.from(good[1] as string)]),
    skipped: 2,
    notes: ["2 of 4 lines do not fit the format. They were skipped."],
  },
  "invalid requests": {
    log: [...good, lineAt("192.0.2.9", 2, "-"), lineAt("192.0.2.9", 2, "\\x16\\x03\\x01\\x02"), lineAt("192.0.2.9", 2, "")].join("\n"),
    skipped: 3,
    notes: ["3 of 5 lines have no HTTP request. They were skipped."],
  },
  "blank lines and carriage returns": { log: `\ufeff${good.join("\r\n\r\n")}\r\n  \r\n`, skipped: 2, notes: [] },
  "no address": {
    log: [...good, lineAt("-", 1)].join("\n"),
    skipped: 0,
    requests: 3,
    notes: [/^1 request has no client address\. .* FLOODGATE_NO_CLIENT_IP/],
  },
};

describe.each(Object.entries(hostile))("%s", (_, { log, skipped, notes, requests = 2 }) => {
  it("is counted and said, and the other lines are replayed", async () => {
    const simulation = await simulate([logOf(log)], perIp);
    expect(simulation).toMatchObject({ requests, skipped, lines: requests + skipped, rules: [{ limited: 1 }] });
    expect(simulation.notes).toEqual(notes.map((note) => (typeof note === "string" ? note : expect.stringMatching(note))));
  });
});

it("an empty log has no lines", async () => {
  expect(await simulate([logOf("")], perIp)).toMatchObject({ lines: 0, requests: 0, skipped: 0, rules: [{ requests: 0 }], notes: [] });
});

it.each([
  ["a binary file", randomBytes(20_000)],
  ["a line of one character", Buffer.from("x\n")],
])("%s has no request, and its format is said to be unknown", async (_, log) => {
  const { requests, lines, skipped, notes } = await simulate([logOf(log)], perIp);
  expect(requests).toBe(0);
  expect(skipped).toBe(lines);
  expect(notes[0]).toMatch(/^test\.log is in no format that is known\./);
});

it("a truncated gzip file is replayed as far as it goes", async () => {
  const lines = Array.from({ length: 5000 }, (_, i) => lineAt(`10.${i % 7}.${i % 250}.1`, i));
  const whole = zlib.gzipSync(lines.join("\n"));
  const { requests, notes } = await simulate([logOf(whole.subarray(0, whole.length / 2))], perIp);
  expect(requests).toBeGreaterThan(2000);
  expect(requests).toBeLessThan(3000);
  expect(notes).toContain("test.log is damaged: unexpected end of file. What could be read of it was replayed.");
});

it("a zstd file is replayed where Node.js can, else the error says what to do", async () => {
  const { zstdCompressSync } = zlib as typeof zlib & { zstdCompressSync?: (data: string) => Uint8Array };
  if (zstdCompressSync === undefined) {
    const magic = Uint8Array.from([0x28, 0xb5, 0x2f, 0xfd, 0, 0]);
    await expect(simulate([logOf(magic, "access.log.zst")], perIp)).rejects.toThrow(
      /^access\.log\.zst is compressed with zstd, which Node\.js reads from version 22\.15 on; .* zstd -dc access\.log\.zst/,
    );
  } else expect(await simulate([logOf(zstdCompressSync(good.join("\n")))], perIp)).toMatchObject({ requests: 2, rules: [{ limited: 1 }] });
});

// The first bytes that xz, bzip2 and zip write.
it.each([
  ["xz", "xz -dc", "\xfd7zXZ\0"],
  ["bzip2", "bzip2 -dc", "BZh91AY&SY"],
  ["zip", "unzip -p", "PK\x03\x04\x14\0"],
])("a log compressed with %s is refused with the program that reads it", async (name, program, start) => {
  const log = logOf(Buffer.from(start, "latin1"), "access.log");
  const why = `is compressed with ${name}, which Node.js does not read. Write ${program}`;
  await expect(simulate([log], perIp)).rejects.toThrow(`access.log ${why} access.log | floodgate simulate -.`);
  await expect(simulate([{ ...log, name: "stdin", once: true }], perIp)).rejects.toThrow(`stdin ${why} | floodgate simulate -.`);
});

it("time that runs backwards counts as the latest time, and is counted", async () => {
  const fixed = rules("rules: [{ name: per-ip, policy: { algorithm: fixed-window, limit: 1, window: 1m } }]");
  const lines = [600, 700, 0, 0].map((seconds) => lineAt("192.0.2.1", seconds));
  expect(await simulate([logOf(lines)], fixed, { reorder: 1 })).toMatchObject({ late: 2, rules: [{ allowed: 2, limited: 2 }] });
});

it("a log with the newest line first is sorted if it fits the buffer, and refused with the way to sort it if not", async () => {
  const fixed = rules("rules: [{ name: per-ip, policy: { algorithm: fixed-window, limit: 1, window: 1m } }]");
  const lines = Array.from({ length: 500 }, (_, i) => lineAt("192.0.2.1", 500 - i));
  expect(await simulate([logOf(lines)], fixed)).toMatchObject({ late: 0, rules: [{ allowed: 9 }] });
  await expect(simulate([logOf(lines)], fixed, { reorder: 10 })).rejects.toThrow(
    /^test\.log: 489 requests of 500 came after later ones, .*Or raise --reorder above 10, /,
  );
});

it.each([
  ["a log in small chunks", 1, false],
  ["a log in one chunk", 1, true],
  ["each of several logs", 2, false],
])("%s is closed when its replay fails", async (_, logs, isWhole) => {
  const lines = Array.from({ length: 30_000 }, (_, i) => lineAt("192.0.2.1", 30_000 - i));
  let open = 0;
  const sources = Array.from({ length: logs }, (): LogSource => {
    const log = logOf(lines);
    return {
      name: log.name,
      async *open() {
        open++;
        try {
          if (isWhole) yield Buffer.from(lines.join("\n"));
          yield* log.open();
        } finally {
          open--;
        }
      },
    };
  });
  await expect(simulate(sources, perIp, { reorder: 10 })).rejects.toThrow("came after later ones");
  expect(open).toBe(0);
});

it("more clients than --max-clients are counted, but not measured, and the store stays bounded", async () => {
  const lines = Array.from({ length: 3000 }, (_, i) => lineAt(`10.0.${i >> 8}.${i & 255}`, 0));
  const {
    rules: [rule],
    notes,
  } = await simulate([logOf(lines)], perIp, { maxClients: 1000 });
  expect(rule).toMatchObject({ requests: 3000, clients: 1000, unmeasured: 2000 });
  expect(notes).toEqual([
    "There are more clients than --max-clients. 2,000 requests of the others were counted, but these clients were not measured.",
    "The store was full and dropped 2,000 counts, so more would be limited. Raise --max-clients.",
  ]);
});

it("nothing of a log reaches a terminal raw", async () => {
  const evil = "\u001b[31m<script>alert(1)</script>\u0007\u202e\u2028";
  const set = rules("rules: [{ name: per-agent, key: header:user-agent, limit: 1, window: 1m }]");
  const line = lineAt("192.0.2.1", 0, "GET / HTTP/1.1", evil);
  const simulation = await simulate([logOf([line, line])], set);
  expect(simulation.rules[0]?.topLimited[0]?.key).toBe(evil);
  const text = simulationText(simulation, plain);
  expect(text).toContain("\ufffd[31m<script>");
  expect(text).not.toMatch(/[^\n\P{C}]|[\p{Zl}\p{Zp}]/u);
});

it("a few lines out of order are told in a note", async () => {
  const lines = Array.from({ length: 12_000 }, (_, i) => lineAt("192.0.2.1", i));
  lines.push(lineAt("192.0.2.1", 0));
  const { late, notes } = await simulate([logOf(lines)], perIp, { reorder: 100 });
  expect(late).toBe(1);
  expect(notes).toEqual([expect.stringContaining("1 request came out of order")]);
});

it("a log in UTF-16 is told with the command that converts it", async () => {
  const { notes, requests } = await simulate([logOf(Buffer.from(`\uFEFF${good.join("\n")}\n`, "utf16le"))], perIp);
  expect(requests).toBe(0);
  expect(notes[0]).toBe(
    "test.log is in UTF-16. Convert it to UTF-8: iconv -f UTF-16 -t UTF-8 <log> | floodgate simulate - (and your options).",
  );
});
