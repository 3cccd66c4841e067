import { type Library, type Migration, migrate } from "@floodgate/migrate";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type App, exchange, type Reply, type Request, shown } from "./exchange.js";
import { type Block, load, Page } from "./page.js";

/** Ten seconds into a minute. */
export const heldMs = Date.UTC(2026, 10, 22, 10, 0, 10);

/** Holds the clock of all tests of a file, so that none crosses the edge of a window. */
export function holdClock(): void {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["Date"], now: heldMs });
  });
  afterEach(() => {
    vi.useRealTimers();
  });
}

/** Rewrites code with `migrate`. */
function migrated(library: Library, code: string): Migration {
  const migration = migrate(library, "app.ts", code);
  if (migration === undefined) throw new Error(`The code does not use ${library}.`);
  return migration;
}

/** Redis has a clock of its own. Nobody waits for the edge of such a window. */
function withLongWindows(code: string): string {
  return code.replaceAll("24 * 60 * 60", "365 * 24 * 60 * 60").replaceAll('"1d"', '"365d"').replaceAll('"1 d"', '"365 d"');
}

/** An example of a page. */
export interface Example {
  readonly heading: string;
  readonly requests: readonly Request[];
  /** The status of each response, on both sides. Default: both sides are only compared. */
  readonly statuses?: readonly number[];
  /** Whether the page shows no responses, because they depend on the time. */
  readonly hidesReplies?: true;
  /** Starts a Redis, whose address the example finds in REDIS_URL. Each side gets one of its own. */
  readonly redis?: () => Promise<{ readonly port: number; stop(): unknown }>;
  /** Whether "after" is written by hand. Default: it is what the command writes. */
  readonly isByHand?: true;
  /** Hides what changes from run to run in the other library's responses. */
  readonly mask?: (text: string) => string;
}

/**
 * Tests that both sides of the examples of docs/migrating/from-<name>.md do what the page says. The clock is held.
 * `npx vitest run <file> --update` writes what the page shows.
 */
export function pageTest(
  name: string,
  library: Library | undefined,
  examples: readonly Example[],
  appOf: (module: never) => App | Promise<App> = ({ app }) => app,
): Page {
  const page = new Page(name);
  describe(name, () => {
    holdClock();
    const blocks: Block[] = [];

    it.each(examples)("$heading: both sides decide alike, and the page shows what clients get", async (example) => {
      const { heading, statuses, hidesReplies, isByHand, mask = (text) => text } = example;
      const before = page.code(heading, "before").text;
      const { info, text: written } = page.code(heading, "after");
      const after = isByHand === true || library === undefined ? written : rewritten(library, before);
      const [theirs, ours] = [await replies(example, before), await replies(example, after)];
      expect(ours.map(({ status }) => status)).toEqual(statuses ?? theirs.map(({ status }) => status));
      expect(theirs.map(({ status }) => status)).toEqual(ours.map(({ status }) => status));
      blocks.push({ heading, info, text: after });
      if (hidesReplies) return;
      blocks.push({ heading, info: "http before", text: mask(shown(theirs)) }, { heading, info: "http after", text: shown(ours) });
    });

    it("the page is up to date", async () => {
      await expect(page.with(blocks)).toMatchFileSnapshot(page.path);
    });

    function rewritten(from: Library, code: string): string {
      const { byHand, code: after } = migrated(from, code);
      expect(byHand).toEqual([]);
      // A second run changes nothing, and the ends of lines change nothing else.
      expect(migrate(from, "app.ts", after)?.code ?? after).toBe(after);
      expect(migrated(from, code.replaceAll("\n", "\r\n")).code).toBe(after.replaceAll("\n", "\r\n"));
      return after;
    }

    async function replies({ redis: start, requests }: Example, code: string): Promise<Reply[]> {
      const redis = await start?.();
      process.env["REDIS_URL"] = `redis://127.0.0.1:${redis?.port}`;
      const module = await load<{ redis?: { disconnect?: () => unknown } }>(redis === undefined ? code : withLongWindows(code));
      try {
        return await exchange(await appOf(module as never), requests);
      } finally {
        module.redis?.disconnect?.();
        await redis?.stop();
      }
    }
  });
  return page;
}
