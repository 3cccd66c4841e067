import { appendFileSync } from "node:fs";
import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { run } from "../src/index.js";
import { floodgate } from "./command.js";
import { tempFolder } from "./files.js";
import { floodgateProcess, startFloodgate } from "./process.js";

const folder = tempFolder();

const line = (ip: string, time: string, request: string, user: string): string =>
  `${ip} - - [20/Nov/2026:${time} +0000] "${request}" 200 12 "-" "curl/8" "${user}"`;
const log = [
  line("203.0.113.9", "12:00:01", "POST /posts HTTP/1.1", "ann"),
  line("203.0.113.9", "12:00:02", "POST /posts HTTP/1.1", "ann"),
  line("198.51.100.7", "12:00:02", "GET /posts/1 HTTP/1.1", "-"),
  line("203.0.113.9", "12:00:03", "POST /posts HTTP/1.1", "bob"),
  "not a line of a log",
].join("\n");
const limits = `rules:
  - name: posts
    match: { method: POST, path: /posts }
    key: user
    policy: { algorithm: fixed-window, limit: 1, window: 1m }
  - name: per-ip
    policy: { algorithm: fixed-window, limit: 100, window: 1m }
`;
const access = folder.write("access.log", log);
const file = folder.write("limits.yaml", limits);
const pattern = '$remote_addr - $remote_user [$time_local] "$request" $status $bytes "$http_referer" "$http_user_agent" "$http_x_user"';

it("prints what each rule would have done, and the lines that were skipped", async () => {
  const { code, out, err } = await floodgate(["simulate", access, "--rules", file, "--format", pattern, "--key", "user=$http_x_user"]);
  expect({ code, err }).toEqual({ code: 0, err: "floodgate: 1 of 5 lines does not fit the format. It was skipped.\n" });
  expect(out).toBe(`4 requests in 5 lines, format ${pattern}
2026-11-20 12:00:01 to 2026-11-20 12:00:03 UTC

  rule    policy                    by    requests  allowed  limited   share  clients  ever limited   share
  posts   1 per 1m, fixed-window    user         3        2        1  33.3 %        2             1  50.0 %
  per-ip  100 per 1m, fixed-window  ip           3        3        0     0 %        2             0     0 %

1 of 4 requests (25.0 %) would have been rejected.

posts
  let at most 1 through in any 1m for one client, and 1 in a second
  longest lock-out 58s
  at most 2 keys at once: about 248 bytes in memory, 240 bytes in Redis
  Limited most, without the requests that only other rules rejected:
    client  requests  limited   share  most in 1m  longest lock-out
    ann            2        1  50.0 %           2               58s

per-ip
  let at most 2 through in any 1m for one client, and 1 in a second
  at most 2 keys at once: about 248 bytes in memory, 240 bytes in Redis
`);
});

it("prints JSON, and reads standard input", async () => {
  const { code, out, err } = await floodgateProcess(["simulate", "-", "--rules", file, "--json"], { input: `${log}\n` });
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(JSON.parse(out)).toMatchObject({
    rules: [
      { name: "posts", requests: 3, allowed: 1, limited: 2, clients: 1, clientsLimited: 1 },
      { name: "per-ip", requests: 2, allowed: 2, limited: 0, clients: 2, clientsLimited: 0, longestLockoutMs: 0 },
    ],
    lines: 5,
    requests: 4,
    skipped: 1,
    rejected: 2,
    formats: { stdin: "combined" },
    notes: [
      "1 of 5 lines does not fit the format. It was skipped.",
      'The rules count by "user", but nothing says where the log has it, so no request has this key. Write --key user=<field>.',
    ],
  });
});

it("shows a progress bar only if standard error is a terminal", async () => {
  const errTerminal = Object.assign(new PassThrough(), { isTTY: true, columns: 100, cursorTo: () => true, clearLine: () => true });
  let out = "";
  let err = "";
  const io = {
    out: (text: string) => {
      out += text;
    },
    err: (text: string) => {
      err += text;
    },
    readInput: async () => "",
    input: new PassThrough(),
    isTerminal: false,
    hasColors: false,
    errTerminal,
  };
  expect(await run(["simulate", access, "--rules", file], io)).toBe(0);
  expect(`${errTerminal.read()}`).toContain("lines/s");
  expect(out).not.toContain("lines/s");
  expect(err).not.toContain("lines/s");
});

it.each([
  [["missing.log", "--rules", file], 64, "missing.log does not exist."],
  [["--compare", "1/1m", access], 64, "Write the logs before the options"],
  [[access, "--compare", "20"], 64, 'the policy "20" has no rate.'],
  [[access], 64, "say what to do with the requests."],
  [[access, "--rules", file, "--format", "combine"], 64, 'There is no log format "combine". Did you mean "combined"?'],
  [[access, "--rules", file, "--key", "usr=$x"], 64, 'no rule uses the key "usr". Did you mean "user"?'],
  [[access, "--rules", file, "--max-clients", "0"], 64, "It must be a whole number from 1"],
  [["-", "-", "--rules", file], 64, "standard input (-) can be read only once."],
  [["-", "--rules", "-"], 64, "standard input (-) can be read only once."],
  [["-", access, "--rules", "-", "--follow"], 64, "standard input (-) can be read only once."],
] as const)("refuses %j", async (args, code, message) => {
  const ended = await floodgate(["simulate", ...args]);
  expect(ended.code).toBe(code);
  expect(ended.err).toContain(message);
});

it("a file without any request is an error, and so is an empty one; JSON is printed all the same", async () => {
  const other = await floodgate(["simulate", folder.write("other.txt", "hello\nworld\n"), "--rules", file]);
  expect(other.code).toBe(1);
  expect(other.err).toContain("is in no format that is known.");
  expect(other.err).toContain("floodgate: the log has no request.");
  const empty = await floodgate(["simulate", folder.write("empty.log", ""), "--rules", file, "--json"]);
  expect(empty).toMatchObject({ code: 1, err: "floodgate: the log is empty.\n" });
  expect(JSON.parse(empty.out)).toMatchObject({ requests: 0, lines: 0 });
});

it("says that no request matches --match", async () => {
  const compared = await floodgate(["simulate", access, "--compare", "100/1m", "--match", "/nonsense"]);
  expect(compared.err).toContain('floodgate: No request of the log matches "/nonsense", so nothing was compared.');
  const suggested = await floodgate(["simulate", access, "--suggest", "--match", "/nonsense"]);
  expect(suggested).toMatchObject({
    code: 1,
    err: 'floodgate: suggest: the logs have no request that matches "/nonsense". Give another `match`, or leave it out.\n',
  });
});

it.each(allRuns ? (["SIGINT", "SIGTERM"] as const) : (["SIGTERM"] as const))(
  "--follow goes on with a log until %s, and then prints the whole report",
  async (signal) => {
    const growing = folder.write(`${signal}.log`, `${log.split("\n").slice(0, 2).join("\n")}\n`);
    const child = startFloodgate(["simulate", growing, "--rules", file, "--follow", "--every", "1ms"]);
    await child.printed("2 requests  posts: 1 limited (50.0 %), 1 of 1 client");
    appendFileSync(growing, `${line("198.51.100.7", "12:00:09", "GET / HTTP/1.1", "-")}\n`);
    await child.printed("12:00:09 UTC  3 requests");
    child.stop(signal);
    const { code, out } = await child.ended;
    expect(code).toBe(0);
    expect(out).toContain("3 requests in 3 lines");
    expect(out).toContain("per-ip  100 per 1m, fixed-window");
  },
);

it("--follow reads standard input until it ends, and prints only the report as JSON", async () => {
  const { code, out } = await floodgate(["simulate", "-", "--rules", file, "--follow", "--json"], log);
  expect({ code, ...JSON.parse(out) }).toMatchObject({ code: 0, requests: 4, lines: 5 });
});

it.each([
  [["--compare", "100/1m", "--follow"], "--follow is for --rules"],
  [["--rules", file, "--every", "1s"], "--every is for --follow"],
])("refuses %s", async (args, reason) => {
  const { code, err } = await floodgate(["simulate", access, ...args]);
  expect(code).toBe(64);
  expect(err).toContain(reason);
});
