// What `npm test` says before it does anything. It runs before the packages are installed, so it needs only Node.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import programs from "../tools/test-servers/src/programs.json" with { type: "json" };

const isLong = process.argv[2] === "long";
const postgres = "/usr/lib/postgresql";
const versions = existsSync(postgres) ? readdirSync(postgres).map((version) => join(postgres, version, "bin")) : [];
const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/local/sbin", "/usr/sbin", ...versions];
/** Runs a command. Answers the first line of its complaint if it fails. */
function attempt(command) {
  try {
    command();
  } catch (error) {
    return String(error.stderr ?? error.message)
      .trim()
      .split("\n", 1)[0];
  }
}

const isThere = ({ names }) => names.some((name) => folders.some((folder) => existsSync(resolve(folder, name))));
const needed = Object.values(programs).filter((program) => isLong || !program.long);
const missing = [...new Set(needed.filter((program) => !isThere(program)).map(({ debian }) => debian))];
const installs = existsSync("/usr/bin/apt-get") && (process.getuid?.() === 0 || process.env.CI !== undefined);

if (!isLong) console.log("All tests: about 4 minutes on two cores. npm run test:quick takes less than one.");
console.log("First: pnpm installs the packages into node_modules, and everything is built (about a minute).");
if (missing.length === 0) console.log("The servers and the browser that tests start are all here: nothing else is installed.");
else if (installs) console.log(`apt-get installs what is missing here: ${missing.join(", ")}.`);
else console.log(`Some tests fail without these. On Debian: sudo apt-get install ${missing.join(" ")}. Root and CI install them.`);
console.log();

if (missing.length > 0 && installs) {
  const apt = process.getuid?.() === 0 ? ["apt-get"] : ["sudo", "-n", "--preserve-env=RUNLEVEL,DEBIAN_FRONTEND", "apt-get"];
  // Debian starts no service in run level 1.
  const env = { ...process.env, RUNLEVEL: "1", DEBIAN_FRONTEND: "noninteractive" };
  const run = (...args) => execFileSync(apt[0], [...apt.slice(1), "-o", "DPkg::Lock::Timeout=300", ...args], { env, stdio: "pipe" });
  const update = attempt(() => run("update"));
  if (update !== undefined) console.log(`apt-get update failed: ${update}`);
  for (const name of missing) {
    const isKnown = attempt(() => execFileSync("apt-cache", ["show", name], { stdio: "pipe" })) === undefined;
    const failure = isKnown ? attempt(() => run("install", "--yes", "--no-install-recommends", name)) : "this system has no such package";
    // Its tests say what they lack, or are left out.
    if (failure !== undefined) console.log(`${name} is not installed: ${failure}.`);
  }
}
