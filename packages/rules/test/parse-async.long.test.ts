import { checkRules } from "@floodgate/core/rules";
import { afterEach, describe, expect, it, test } from "vitest";
import { type LiveRules, liveRules, parseRules, RulesError } from "../src/index.js";
import { checkText } from "../src/parse.js";

const rulesOf = (count: number, limit: (i: number) => string): string =>
  `rules:\n${Array.from({ length: count }, (_, i) => `  - { name: r${i}, ${limit(i)}, window: 1m }\n`).join("")}`;

/** The error that `parseRules` throws. */
function errorOf(text: string): RulesError {
  try {
    parseRules(text, "limits");
  } catch (error) {
    if (error instanceof RulesError) return error;
  }
  throw new Error("parseRules did not throw");
}

/** Counts timers of a millisecond until the work is done. */
async function turnsDuring<T>(work: Promise<T>): Promise<{ turns: number; result: T }> {
  let turns = 0;
  let running = true;
  const turn = (): void => {
    turns++;
    if (running) setTimeout(turn, 1);
  };
  setTimeout(turn, 1);
  const result = await work.finally(() => {
    running = false;
  });
  return { turns, result };
}

/** `npm run test:long` parses thousands of rules. The shorter texts too are parsed in a worker thread. */
const count = 3000;

describe("a long text", { timeout: 60_000 }, () => {
  let rules: LiveRules | undefined;
  afterEach(() => rules?.close());

  it.each([
    ["unknown options", rulesOf(count, () => "limt: 5")],
    ["limits below 0", rulesOf(count, () => "limit: -5")],
    ["syntax errors", "rules:\n\t- a\n".repeat(2000)],
  ])("with many %s gets the error of parseRules, and does not block the event loop", async (_, bad) => {
    let text = rulesOf(1, () => "limit: 5");
    let onRefused: (error: unknown) => void = () => undefined;
    let changed = (): void => undefined;
    rules = await liveRules(
      {
        source: "limits",
        read: async () => ({ text }),
        watch: (call) => {
          changed = call;
          return () => undefined;
        },
      },
      { onEvent: (event) => onRefused(event.type === "rules-refused" ? event.error : event) },
    );
    text = bad;
    const refused = new Promise<unknown>((resolve) => {
      onRefused = resolve;
    });
    changed();
    const { turns, result } = await turnsDuring(refused);
    expect(turns).toBeGreaterThan(20);
    const expected = errorOf(bad);
    expect(result).toBeInstanceOf(RulesError);
    expect((result as RulesError).message).toBe(expected.message);
    expect((result as RulesError).problems).toEqual(expected.problems.slice(0, 100));
    expect(rules.current.rules).toHaveLength(1);
  });

  it("that only a middleware refuses is reported with positions, and does not block the event loop", async () => {
    const words = (key: string): string => rulesOf(count, (i) => `key: ${i % 30 === 0 ? key : "ip"}, limit: ${i + 1}`);
    let text = words("user");
    let onRefused: (error: unknown) => void = () => undefined;
    let changed = (): void => undefined;
    rules = await liveRules({
      source: "limits",
      read: async () => ({ text }),
      watch: (call) => {
        changed = call;
        return () => undefined;
      },
    });
    const refused = new Promise<unknown>((resolve) => {
      onRefused = resolve;
    });
    let positioning: ReturnType<typeof turnsDuring<unknown>> | undefined;
    rules.subscribe({
      prepare: (set) => {
        const mistakes = checkRules(set, { keys: ["user"] });
        if (mistakes.length === 0) return () => undefined;
        positioning = turnsDuring(refused);
        throw new Error("these rules are invalid", { cause: new AggregateError(mistakes) });
      },
      tell: (event) => onRefused(event.type === "rules-refused" ? event.error : event),
    });
    text = words("usr");
    changed();
    await refused;
    const { turns, result } = await (positioning as NonNullable<typeof positioning>);
    expect(turns).toBeGreaterThan(20);
    expect(result).toBeInstanceOf(RulesError);
    const column = text.split("\n")[1]?.indexOf("usr") as number;
    expect((result as RulesError).problems).toMatchObject(
      Array.from({ length: count / 30 }, (_, i) => ({ line: 2 + 30 * i, path: ["rules", 30 * i, "key"] })),
    );
    expect((result as RulesError).problems[0]).toMatchObject({ column: column + 1, message: expect.stringContaining("usr") });
  });

  it("that is valid is loaded as parseRules reads it, and does not block the event loop", async () => {
    const text = rulesOf(count, (i) => `limit: ${i + 1}`);
    const { turns, result } = await turnsDuring(liveRules({ source: "limits", read: async () => ({ text }) }));
    rules = result;
    expect(turns).toBeGreaterThan(20);
    expect(rules.current).toEqual(parseRules(text));
  });
});

test.each([
  ["unknown options", rulesOf(50, () => "limt: 5, key: 7")],
  ["limits below 0", rulesOf(50, () => "limit: -5")],
  ["syntax errors", "rules:\n\t- a\n".repeat(50)],
  ["duplicate keys", rulesOf(50, () => "limit: 5, limit: 6")],
])("with a maximum, the first problems of a text with %s are explained and the others counted", (_, text) => {
  const { problems } = errorOf(text);
  for (const max of [1, 7, problems.length, 1000]) {
    expect(checkText(text, max)).toEqual({ problems: problems.slice(0, max), more: Math.max(problems.length - max, 0) });
  }
});
