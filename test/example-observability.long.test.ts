import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { program } from "../tools/test-servers/src/index.js";
import { withProgram } from "./programs.js";

const demo = join(import.meta.dirname, "../examples/observability/demo.mjs");

/** Starts the example on a spare port with this PATH, waits for its last line, passes its output, and stops it as Ctrl-C does. */
async function withExample(path: string, use: (printed: string) => Promise<void>): Promise<void> {
  const env = { ...process.env, PATH: path, PORT: "0" };
  expect(await withProgram([process.execPath, demo], /Ctrl-C stops it/, { env, signal: "SIGINT" }, use)).toBe(0);
}

const addressAfter = (word: string, printed: string): string =>
  new RegExp(`${word}: +(http://127\\.0\\.0\\.1:\\d+[^\\s?]*)`).exec(printed)?.[1] ?? `no address after ${word}`;

const soon = { interval: 200, timeout: 40_000 };

test("the observability example shows its traffic in the metrics, on the dashboard and in Prometheus with the alert rules", {
  timeout: 90_000,
}, async () => {
  await withExample(dirname(program("prometheus")), async (printed) => {
    const metrics = addressAfter("Metrics", printed);
    const results = async (): Promise<string[]> => {
      const text = await (await fetch(metrics)).text();
      const counted = text.matchAll(/^floodgate_rate_limiting_(?:requests|bans)_total\{rule="(.+?)",result="(.+?)"\} [1-9]/gm);
      return Array.from(counted, ([, rule, result]) => `${rule} ${result}`);
    };
    await expect
      .poll(results, soon)
      .toEqual(
        expect.arrayContaining([
          "per-client allowed",
          "per-client limited",
          "stricter shadow-limited",
          "reports delayed",
          "login limited",
          "login enforced",
        ]),
      );

    const dashboard = addressAfter("Dashboard", printed);
    expect(await (await fetch(dashboard)).text()).toContain("The observability example");
    const { totals } = (await (await fetch(`${dashboard}/data/overview`)).json()) as { totals: { rule: string }[] };
    expect(totals.map(({ rule }) => rule)).toEqual(expect.arrayContaining(["per-client", "stricter", "login", "reports"]));

    const prometheus = new URL(addressAfter("Alerts", printed)).origin;
    const read = async (path: string): Promise<string> => (await fetch(`${prometheus}${path}`)).text().catch(String);
    await expect.poll(() => read("/api/v1/targets").catch(String), soon).toContain('"health":"up"');
    expect(await read("/api/v1/rules")).toContain("FloodgateFailingOpen");
  });
});

test("without Prometheus, the observability example says how to get it", { timeout: 60_000 }, async () => {
  await withExample("", async (printed) => {
    expect(printed).toMatch(
      /Prometheus: +is not installed\. Install it .*\n.*let yours scrape 127\.0\.0\.1:\d+ with the alert rules in\n +\S+alerts\.yaml/,
    );
  });
});
