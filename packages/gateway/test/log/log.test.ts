import { type DecisionEvent, fixedWindow } from "@floodgate/core";
import { afterEach, beforeEach, describe, expect, it, test, vi } from "vitest";
import { resolveSettings } from "../../src/config/resolve.js";
import type { Settings } from "../../src/config/settings.js";
import { EventLog } from "../../src/log/events.js";
import { createLog } from "../../src/log/log.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function logTo(lines: string[], settings: Partial<Settings> = {}, isTTY = false) {
  const complete = resolveSettings("serve", { code: { rules: "limits.yaml", ...settings } }).settings;
  const log = createLog(complete, { write: (line) => lines.push(line), isTTY });
  return { log, events: new EventLog(complete, undefined, log) };
}

function limited(key: string): DecisionEvent {
  const policy = fixedWindow({ limit: 5, window: "1m" });
  const decision = { allowed: false, limit: 5, retryAfterMs: 1500, policy } as unknown as DecisionEvent["decision"];
  return { type: "limited", name: "login", key, decision, shadow: false, charged: 0, storeMs: 0 };
}

describe("limited requests", () => {
  it("are logged with their rule and a masked key", () => {
    const lines: string[] = [];
    logTo(lines).events.tell(limited("203.0.113.7"));
    expect(JSON.parse(lines[0] as string)).toMatchObject({
      level: "info",
      message: "limited",
      rule: "login",
      key: "203.0.113.x",
      retryAfterMs: 1500,
    });
  });

  it.each([
    ["hashed", /^[0-9a-f]{16}$/],
    ["plain", /^203\.0\.113\.7$/],
  ] as const)("show keys %s if the setting says so", (logKeys, shown) => {
    const lines: string[] = [];
    logTo(lines, { logKeys }).events.tell(limited("203.0.113.7"));
    expect(JSON.parse(lines[0] as string).key).toMatch(shown);
  });

  it("make few lines in a flood, and one that says how many were left out", () => {
    const lines: string[] = [];
    const { events } = logTo(lines, { logLimited: 2 });
    for (let i = 0; i < 100_000; i++) events.tell(limited("a"));
    expect(lines).toHaveLength(2);
    vi.advanceTimersByTime(1000);
    expect(lines).toHaveLength(3);
    expect(JSON.parse(lines[2] as string)).toMatchObject({ count: 99_998, message: "more requests were limited in this second" });
    events.tell(limited("b"));
    expect(lines).toHaveLength(4);
    events.tell(limited("b"));
    events.tell(limited("b"));
    events.close();
    expect(JSON.parse(lines[5] as string)).toMatchObject({ count: 1 });
  });
});

test("an outage of the store is logged once, and its faults every ten seconds", () => {
  const lines: string[] = [];
  const { events } = logTo(lines);
  const messages = (): string[] => lines.splice(0).map((line) => JSON.parse(line).message);
  for (let tries = 0; tries < 100; tries++) {
    events.tell({ type: "store-error", error: new Error("READONLY") });
    events.tell({ type: "breaker", state: "open" });
    events.tell({ type: "breaker", state: "half-open" });
  }
  events.tell({ type: "breaker", state: "open", part: "10.0.0.2:6379" });
  const down = "The store fails. It is not asked until it answers again.";
  expect(messages()).toEqual(["The store could not decide.", down, down]);
  vi.advanceTimersByTime(10_000);
  events.tell({ type: "store-error", error: new Error("READONLY") });
  expect(JSON.parse(lines[0] as string)).toMatchObject({ reason: "READONLY", skipped: 99 });
  for (let i = 0; i < 2; i++) events.tell({ type: "breaker", state: "closed" });
  events.tell({ type: "breaker", state: "open" });
  expect(messages()).toEqual(["The store could not decide.", "The store answers again.", down]);
});

const hostile = "\u001b[2J\u0007\u009b31m\u202eevil\r\nINFO fake";

test.each(["json", "pretty"] as const)("nothing in a %s line controls a terminal or passes for another line", (logFormat) => {
  const lines: string[] = [];
  const { log } = logTo(lines, { logFormat, logKeys: "plain" });
  log.warn({ key: hostile, err: new Error(hostile) }, hostile);
  const text = lines.join("");
  expect(text).not.toMatch(/[^\n\P{C}]/u);
  expect(text).toContain("evil");
  expect(text.split("\n").filter((line) => line.startsWith("INFO"))).toEqual([]);
});

test("lines are dropped while a megabyte waits to be written, and the next line says how many", () => {
  const { settings } = resolveSettings("serve", { code: { rules: "limits.yaml" } });
  const lines: string[] = [];
  const pipe = { writableLength: 0, write: (line: string) => lines.push(line) };
  const log = createLog(settings, pipe);
  log.warn("read");
  pipe.writableLength = 2 ** 20 + 1;
  for (let i = 0; i < 3; i++) log.warn("not read");
  pipe.writableLength = 0;
  for (let i = 0; i < 2; i++) log.warn("read again");
  const shown = lines.map((line) => JSON.parse(line)).map(({ message, dropped }) => ({ message, dropped }));
  expect(shown).toEqual([{ message: "read" }, { message: "read again", dropped: 3 }, { message: "read again" }]);
});

test("lines are readable on a terminal, and JSON elsewhere", () => {
  const [terminal, pipe]: [string[], string[]] = [[], []];
  vi.setSystemTime(new Date("2026-11-22T12:00:01Z"));
  logTo(terminal, {}, true).log.warn({ redis: "127.0.0.1:6379" }, "Redis does not answer");
  logTo(pipe).log.warn({ redis: "127.0.0.1:6379" }, "Redis does not answer");
  expect(terminal).toEqual(["12:00:01 WARN  Redis does not answer  redis=127.0.0.1:6379\n"]);
  expect(JSON.parse(pipe[0] as string)).toEqual({
    level: "warn",
    time: "2026-11-22T12:00:01.000Z",
    redis: "127.0.0.1:6379",
    message: "Redis does not answer",
  });
});

test("a proxy that is not trusted is reported in the words of the settings", () => {
  const lines: string[] = [];
  const message = "A request from 172.17.0.1 carries a forwarded address, but no proxy is trusted.";
  logTo(lines).events.tell({ type: "warning", code: "FLOODGATE_MISSING_PROXY_SETTING", message });
  expect(JSON.parse(lines[0] as string).message).toContain("write --trusted-peers loopback,172.17.0.1.");
});
