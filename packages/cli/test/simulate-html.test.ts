import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname } from "node:path";
import { expect, it } from "vitest";
import { floodgate } from "./command.js";
import { tempFolder } from "./files.js";

const folder = tempFolder();
const log = Array.from({ length: 6 }, (_, i) => `203.0.113.9 - - [20/Nov/2026:12:00:0${i} +0000] "GET / HTTP/1.1" 200 12 "-" "curl/8"`);
const access = folder.write("access.log", `${log.join("\n")}\n`);
const file = folder.write("limits.yaml", "rules: [{ name: per-ip, limit: 4, window: 1m }]\n");

/** The data in a page. */
function dataOf(page: string): Record<string, unknown> {
  const [, data = ""] = /<script type="application\/json" id="data">(.*?)<\/script>/s.exec(readFileSync(page, "utf8")) ?? [];
  return JSON.parse(data);
}

it.each([
  ["--rules", [file], "rules"],
  ["--compare", ["4/1m", "gcra 4/1m 2"], "compare"],
  ["--suggest", ["--touch", "10%"], "suggest"],
])("%s writes a page beside its text, and says with which command", async (option, values, task) => {
  const page = folder.path(`${task}.html`);
  const plain = await floodgate(["simulate", access, option, ...values]);
  const { code, out, err } = await floodgate(["simulate", access, option, ...values, "--html", page]);
  expect({ code, out, err }).toEqual({ code: 0, out: plain.out, err: `${plain.err}floodgate: the report is in ${page}\n` });
  const { command, ...data } = dataOf(page);
  expect(data).toMatchObject({ task, requests: 6, logs: [access] });
  expect(command).toBe(
    `floodgate simulate ${access} ${option} ${values.map((value) => (value.includes(" ") ? `'${value}'` : value)).join(" ")} --html ${page}`,
  );
});

it("--json has what the limits of the grid would do, if they are wanted", async () => {
  const without = await floodgate(["simulate", access, "--rules", file, "--json"]);
  expect(JSON.parse(without.out)).not.toHaveProperty("grids");
  const { out } = await floodgate(["simulate", "-", "--rules", file, "--json", "--grid", "10"], log.join("\n"));
  const { timeline, grids } = JSON.parse(out);
  expect(timeline).toEqual({ startMs: Date.UTC(2026, 10, 20, 12), stepMs: 1000, requests: [1, 1, 1, 1, 1, 1] });
  expect(grids).toEqual([{ name: "per-ip", grid: expect.objectContaining({ option: "limit", own: 0 }), burst: expect.anything() }]);
  expect(grids[0].grid.points).toEqual([
    { limit: 4, limited: 2, clientsLimited: 1, limitedAt: [4, 1, 5, 1] },
    { limit: 5, limited: 1, clientsLimited: 1, limitedAt: [5, 1] },
    { limit: 6, limited: 0, clientsLimited: 0, limitedAt: [] },
  ]);
});

it("replaces an older page as a whole, also behind a link, and leaves no other file", async () => {
  const page = folder.write("older.html", "older");
  const link = folder.path("link.html");
  symlinkSync(page, link);
  const before = readdirSync(dirname(page));
  expect(await floodgate(["simulate", access, "--rules", file, "--html", link])).toMatchObject({ code: 0 });
  expect(dataOf(page)).toMatchObject({ requests: 6 });
  expect(readFileSync(link, "utf8")).toBe(readFileSync(page, "utf8"));
  expect(readdirSync(dirname(page))).toEqual(before);
});

it("refuses a file that cannot be written before it reads the log, and never overwrites an input", async () => {
  const missing = folder.path("missing/report.html");
  expect(await floodgate(["simulate", access, "--rules", file, "--html", missing])).toEqual({
    code: 74,
    out: "",
    err: `floodgate: ${missing} cannot be written: ${folder.path("missing")} does not exist.\n`,
  });
  mkdirSync(folder.path("directory"));
  symlinkSync(access, folder.path("to-log"));
  for (const [target, message] of [
    [folder.path("directory"), `${folder.path("directory")} is not a file.`],
    ["/dev/null", "/dev/null is not a file."],
    ["-", "--html writes a file, not standard output."],
    [access, `--html would overwrite ${access}.`],
    [folder.path("to-log"), `--html would overwrite ${access}.`],
    [file, `--html would overwrite ${file}.`],
  ] as const) {
    const { code, out, err } = await floodgate(["simulate", access, "--rules", file, "--html", target]);
    expect({ code, out, err }).toEqual({ code: 64, out: "", err: `floodgate: ${message} Write --html report.html.\n` });
  }
  expect(readFileSync(access, "utf8")).toBe(`${log.join("\n")}\n`);
  expect(existsSync(folder.path("missing"))).toBe(false);
});

it.each(["-1", "100", "many"])("refuses a grid of %s limits", async (size) => {
  const { code, err } = await floodgate(["simulate", access, "--rules", file, "--grid", size]);
  expect({ code, err }).toEqual({ code: 64, err: expect.stringContaining("It must be a whole number from 0 to 99.") });
});
