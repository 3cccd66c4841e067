import { checkRules } from "@floodgate/core/rules";
import { afterEach, describe, expect, it, test } from "vitest";
import { type LiveRules, liveRules, parseRules, RulesError } from "../src/index.js";
import { judgeText } from "../src/parse.js";

const rulesOf = (count: number, limit: (i: number) => string): string =>
  `rules:\n${Array.from({ length: count }, (_, i) => `  - { name: r${i}, ${limit(i)}, window: 1m }\n`).join("")}`;

/** What `parseRules` says of a text. */
function refusalOf(text: string): RulesError {
  try {
    parseRules(text, "limits");
  } catch (error) {
    if (error instanceof RulesError) return error;
  }
  throw new Error("the text was not refused");
}

/** How often the event loop turns until something is done. */
async function turnsDuring<T>(work: Promise<T>): Promise<{ turns: number; result: T }> {
  let turns = 0;
  let running = true;
  const turn = (): void => {
    turns++;
    if (running) setImmediate(turn);
  };
  setImmediate(turn);
  const result = await work.finally(() => {
    running = false;
  });
  return { turns, result };
}

describe("a long text", { timeout: 60_000 }, () => {
  let rules: LiveRules | undefined;
  afterEach(() => rules?.close());

  it.each([
    ["unknown words", rulesOf(5000, () => "limt: 5")],
    ["limits below 0", rulesOf(5000, () => "limit: -5")],
    ["syntax mistakes", "rules:\n\t- a\n".repeat(5000)],
  ])("with thousands of %s is refused as parseRules refuses it, while the event loop turns", async (_, bad) => {
    let text = rulesOf(1, () => "limit: 5");
    let hear: (error: unknown) => void = () => undefined;
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
      { onEvent: (event) => hear(event.type === "rules-refused" ? event.error : event) },
    );
    text = bad;
    const refused = new Promise<unknown>((resolve) => {
      hear = resolve;
    });
    changed();
    const { turns, result } = await turnsDuring(refused);
    expect(turns).toBeGreaterThan(20);
    const expected = refusalOf(bad);
    expect(result).toBeInstanceOf(RulesError);
    expect((result as RulesError).message).toBe(expected.message);
    expect((result as RulesError).problems).toEqual(expected.problems.slice(0, 100));
    expect(rules.current.rules).toHaveLength(1);
  });

  it("that only an app refuses is refused with the places of its mistakes, while the event loop turns", async () => {
    const words = (key: string): string => rulesOf(3000, (i) => `key: ${i % 30 === 0 ? key : "ip"}, limit: ${i + 1}`);
    let text = words("user");
    let hear: (error: unknown) => void = () => undefined;
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
      hear = resolve;
    });
    let placing: ReturnType<typeof turnsDuring<unknown>> | undefined;
    rules.subscribe({
      prepare: (set) => {
        const mistakes = checkRules(set, { keys: ["user"] });
        if (mistakes.length === 0) return () => undefined;
        placing = turnsDuring(refused);
        throw new Error("these rules are bad", { cause: new AggregateError(mistakes) });
      },
      tell: (event) => hear(event.type === "rules-refused" ? event.error : event),
    });
    text = words("usr");
    changed();
    await refused;
    const { turns, result } = await (placing as NonNullable<typeof placing>);
    expect(turns).toBeGreaterThan(20);
    expect(result).toBeInstanceOf(RulesError);
    const column = text.split("\n")[1]?.indexOf("usr") as number;
    expect((result as RulesError).problems).toMatchObject(
      Array.from({ length: 100 }, (_, i) => ({ line: 2 + 30 * i, path: ["rules", 30 * i, "key"] })),
    );
    expect((result as RulesError).problems[0]).toMatchObject({ column: column + 1, message: expect.stringContaining("usr") });
  });

  it("that is good comes into force as parseRules reads it, while the event loop turns", async () => {
    const text = rulesOf(3000, (i) => `limit: ${i + 1}`);
    const { turns, result } = await turnsDuring(liveRules({ source: "limits", read: async () => ({ text }) }));
    rules = result;
    expect(turns).toBeGreaterThan(20);
    expect(rules.current).toEqual(parseRules(text));
  });
});

test.each([
  ["unknown words", rulesOf(50, () => "limt: 5, key: 7")],
  ["limits below 0", rulesOf(50, () => "limit: -5")],
  ["syntax mistakes", "rules:\n\t- a\n".repeat(50)],
  ["words that stand twice", rulesOf(50, () => "limit: 5, limit: 6")],
])("the first mistakes of a text with %s are explained as all of them are, and the others counted", (_, text) => {
  const { problems } = refusalOf(text);
  for (const most of [1, 7, problems.length, 1000]) {
    expect(judgeText(text, most)).toEqual({ problems: problems.slice(0, most), more: Math.max(problems.length - most, 0) });
  }
});
