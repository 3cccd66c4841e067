import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { progress, table } from "./lib/report.mjs";

const floodgate = fileURLToPath(new URL("../packages/cli/dist/main.js", import.meta.url));
const rules = "rules: [{ name: per-ip, key: ip, limit: 100, window: 1m }]\n";
const policies = [
  "100/1m",
  "fixed-window 100/1m",
  "sliding-window-log 100/1m",
  "token-bucket 20 100/1m",
  "leaky-bucket 20 100/1m",
  "gcra 100/1m 20",
];

/** Lines a second of `floodgate simulate`, beside awk and goaccess that count requests by the same field. */
export async function simulate({ lines }) {
  const folder = await mkdtemp(join(tmpdir(), "floodgate-bench-"));
  try {
    const log = join(folder, "access.log");
    const limits = join(folder, "limits.yaml");
    progress(`simulate: writing ${lines.toLocaleString("en")} lines`);
    await writeLog(log, lines);
    await writeFile(limits, rules);
    const node = [process.execPath, floodgate, "simulate", log];
    const subjects = [
      ["awk, requests by address", ["awk", "{ count[$1]++ } END { for (ip in count) n++; print n }", log]],
      ["goaccess", ["goaccess", log, "--log-format=COMBINED", "-o", join(folder, "report.json"), "--no-progress"]],
      ["floodgate, one rule", [...node, "--rules", limits]],
      ["floodgate, --max-clients 1000", [...node, "--rules", limits, "--max-clients", "1000"]],
      ["floodgate, --compare of six policies", [...node, "--compare", ...policies]],
      ["floodgate, --suggest", [...node, "--suggest"]],
    ];
    const rows = [];
    for (const [name, command] of subjects) {
      progress(`simulate: ${name}`);
      const measured = await measure(command);
      if (measured === undefined) rows.push([name, "not installed", "", "", ""]);
      else {
        const { seconds, cpuSeconds, peakBytes } = measured;
        const perSecond = Math.round(lines / seconds).toLocaleString("en");
        rows.push([name, seconds.toFixed(2), cpuSeconds.toFixed(2), perSecond, (peakBytes / 1e6).toFixed(0)]);
      }
    }
    progress("");
    const heading = `${lines.toLocaleString("en")} lines of the combined format`;
    return table(heading, ["subject", "seconds", "CPU seconds", "lines a second", "peak MB"], rows);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Fifty requests a second; a few clients make most of them. */
async function writeLog(file, lines) {
  const out = createWriteStream(file);
  const startMs = Date.UTC(2026, 10, 20);
  const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const agent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36";
  let state = 1;
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  let chunk = "";
  for (let i = 0; i < lines; i++) {
    const date = new Date(startMs + Math.floor(i / 50) * 1000);
    const client = Math.floor(200_000 * random() ** 6);
    const time = `${String(date.getUTCDate()).padStart(2, "0")}/${months[date.getUTCMonth()]}/${date.getUTCFullYear()}:${date.toISOString().slice(11, 19)} +0000`;
    chunk += `10.${client >> 16}.${(client >> 8) & 255}.${client & 255} - - [${time}] "GET /articles/${i % 5000}?page=${i % 7} HTTP/1.1" 200 ${i % 90000} "https://example.com/" "${agent}"\n`;
    if (chunk.length < 1 << 20) continue;
    if (!out.write(chunk)) await once(out, "drain");
    chunk = "";
  }
  out.end(chunk);
  await once(out, "finish");
}

/** Runs a command. Its peak memory and CPU time are what the kernel says last, before the command ends. Undefined if it is not installed. */
async function measure([command, ...args]) {
  const startMs = performance.now();
  const child = spawn(command, args, { stdio: ["ignore", "ignore", "ignore"], env: { ...process.env, LC_ALL: "C" } });
  const failed = once(child, "error").then(() => true);
  const ended = once(child, "exit").then(() => false);
  let peakBytes = 0;
  let cpuSeconds = 0;
  const look = () => {
    try {
      const [, kilobytes = 0] = /VmHWM:\s*(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8")) ?? [];
      peakBytes = Math.max(peakBytes, Number(kilobytes) * 1024);
      // The 14th and 15th field, in hundredths of a second; the name before them may have spaces.
      const fields = readFileSync(`/proc/${child.pid}/stat`, "utf8").split(") ")[1].split(" ");
      cpuSeconds = (Number(fields[11]) + Number(fields[12])) / 100;
    } catch {
      // It has ended, or there is no /proc.
    }
  };
  const timer = setInterval(look, 20);
  try {
    if (await Promise.race([failed, ended])) return undefined;
    return { seconds: (performance.now() - startMs) / 1000, cpuSeconds, peakBytes };
  } finally {
    clearInterval(timer);
  }
}
