import { expect, it, onTestFinished, vi } from "vitest";
import { floodgate } from "./command.js";
import { tempFolder } from "./files.js";

const folder = tempFolder();

/** Ten clients: the busiest makes 10 requests in a minute, the next one 9, and so on. */
const log = Array.from({ length: 10 }, (_, i) =>
  Array.from({ length: i + 1 }, (_, j) => `192.0.2.${i} - - [20/Nov/2026:12:0${i}:${10 + j} +0000] "GET / HTTP/1.1" 200 1`),
)
  .flat()
  .join("\n");
const access = folder.write("access.log", log);

it("--compare prints policies side by side", async () => {
  const { code, out, err } = await floodgate(["simulate", access, "--compare", "8/1m", "fixed-window 5/1m", "--top", "2"]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toContain(`
  1  8 per 1m, sliding-window-counter        3   5.5 %                2  20.0 %           8           1               42s
  2  5 per 1m, fixed-window                 15  27.3 %                5  50.0 %           5           1               45s

They differ most on
  client     requests  limited by 1  limited by 2
  192.0.2.9        10             2             5
  192.0.2.8         9             1             4
`);
});

it("--suggest keeps standard input in a temporary file, and says what to set if it cannot", async () => {
  onTestFinished(() => void vi.unstubAllEnvs());
  vi.stubEnv("TMPDIR", folder.path("none"));
  const { code, out, err } = await floodgate(["simulate", "-", "--suggest"], log);
  expect({ code, out }).toEqual({ code: 74, out: "" });
  expect(err).toMatch(/the log cannot be kept in .*none, to read it again: ENOENT.* Set TMPDIR to a folder with space, or name files\.\n$/);
});

it("--suggest prints a rules file that check accepts, from standard input too", async () => {
  const { code, out, err } = await floodgate(["simulate", "-", "--suggest", "--touch", "20%", "--by", "ip"], log);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toContain("policy: { algorithm: fixed-window, limit: 8, window: 1m }");
  const file = folder.write("suggested.yaml", out);
  expect(await floodgate(["check", file])).toMatchObject({ code: 0, out: `${file}: 6 rules, no problems\n` });
  const replayed = await floodgate(["simulate", access, "--rules", file, "--json"]);
  const counts = JSON.parse(replayed.out).rules.map(({ clientsLimited }: { clientsLimited: number }) => clientsLimited);
  // Several clients need the same bucket.
  expect(counts).toEqual([2, 2, 2, 1, 1, 1]);
});

it("prints both as JSON", async () => {
  const compared = await floodgate(["simulate", access, "--compare", "8/1m", "--json"]);
  expect(JSON.parse(compared.out)).toMatchObject({
    policies: [{ text: "8/1m", policy: { algorithm: "sliding-window-counter" }, limited: 3, clientsLimited: 2, worstWindow: { units: 8 } }],
    lines: 55,
  });
  const suggested = await floodgate(["simulate", access, "--suggest", "--touch", "0.2", "--json"]);
  expect(JSON.parse(suggested.out)).toMatchObject({
    rules: [
      { policy: { algorithm: "fixed-window", limit: 8, window: "1m" }, clientsLimited: 2, need: { value: 8, above: 2 } },
      {},
      {},
      {},
      {},
      {},
    ],
    rates: [{ windowMs: 1000, most: 1 }, { windowMs: 60_000, most: 10, percentiles: { 50: { value: 5 }, 90: { value: 9 }, 99: null } }, {}],
    clients: 10,
  });
});

it.each([
  [["--suggest", "--touch", "100%"], "It must be a percentage below 100%"],
  [["--compare", "100/1m", "--suggest"], "cannot be used together"],
  [["--compare", "100/1m", "--touch", "1%"], "--touch is for --suggest"],
  [["--rules", access, "--by", "user"], "--by is for --compare and --suggest"],
  [["--suggest", "--by", "user", "--key", "usr=$x"], 'Did you mean "user"?'],
  [["--suggest", "--by", "user"], "Write --key user=<field>."],
  [["--compare", "10 per minute"], "is neither a rate"],
  [["--suggest", "--window", "999999999d"], "It must be a duration"],
  [["--rules", access, "--follow", "--every", "999999999d"], "It must be a duration"],
] as const)("refuses %j", async (args, message) => {
  const { code, err } = await floodgate(["simulate", access, ...args]);
  expect(code).not.toBe(0);
  expect(err).toContain(message);
});

it("does not repeat a --key without a name, which may be a secret", async () => {
  const { code, err } = await floodgate(["simulate", access, "--suggest", "--by", "user", "--key", "sk_live_4eC39"]);
  expect({ code, err }).toEqual({ code: 64, err: "floodgate: a --key has no name and value. Write --key 'user=$http_x_user'.\n" });
});
