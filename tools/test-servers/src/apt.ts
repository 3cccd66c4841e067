import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Held while a package is being installed. */
const lock = "/run/lock/floodgate-apt";

/**
 * Installs a package on Debian or a similar system, from the machine's sources and their backports: as root, or with sudo in CI.
 * It starts no service. Concurrent calls, also of several processes, take turns.
 * @throws Error if the package cannot be installed.
 */
export async function aptInstall(name: string): Promise<void> {
  if (!existsSync("/usr/bin/apt-get")) throw new Error("this system has no apt-get");
  if (!isRoot() && process.env["CI"] === undefined) throw new Error("installing it takes root");

  // Separate package lists, so that the machine's lists do not change.
  const dir = mkdtempSync(join(tmpdir(), "floodgate-apt-"));
  const lists = join(dir, "lists");
  mkdirSync(join(lists, "partial"), { recursive: true });
  const options = settings({
    "Dir::Etc::SourceList": "/dev/null",
    "Dir::Etc::SourceParts": sourcesWithBackports(dir),
    "Dir::State::Lists": lists,
    "Acquire::http::Timeout": "10",
    "Acquire::https::Timeout": "10",
    "DPkg::Lock::Timeout": "300",
  });
  try {
    await asRoot(...installCommand(lock, "/usr/sbin/policy-rc.d", dir, name, options));
  } catch (error) {
    throw new Error(`apt-get said: ${(error as { stderr?: string }).stderr?.trim() || String(error)}`);
  }
}

/** Resolves when no process installs a package. Until then a program may exist whose libraries do not. */
export async function noInstallInProgress(): Promise<void> {
  if (existsSync(lock)) await run("flock", ["--shared", lock, "true"]).catch(() => {});
}

/** The command that installs a package, with the temporary folder `dir`, which it removes. */
export function installCommand(lockFile: string, policy: string, dir: string, name: string, options: readonly string[]): string[] {
  return ["flock", lockFile, "sh", "-c", installScript, "sh", dir, policy, name, ...options];
}

/**
 * Installs without starting services: Debian asks the program `policy-rc.d` first, and 101 means no. The machine's own one is restored
 * afterwards. All steps are in one shell with its output in a file, so that they also end well if this process is killed meanwhile.
 */
const installScript = `
dir=$1 policy=$2 name=$3
shift 3
restore() {
  rm -f "$policy"
  if [ -e "$policy.kept" ]; then mv "$policy.kept" "$policy"; fi
}
# An earlier run was killed.
if grep -qs floodgate "$policy"; then restore; fi
if [ -e "$policy" ]; then mv "$policy" "$policy.kept"; fi
trap 'restore; rm -r "$dir"' EXIT
trap 'exit 1' HUP INT TERM
printf '#!/bin/sh\n# floodgate installs a package\nexit 101\n' >"$policy"
chmod 755 "$policy"
export DEBIAN_FRONTEND=noninteractive
# An unreachable source may not matter. If the package is missing, the next step fails.
apt-get "$@" update >"$dir/log" 2>&1
apt-get "$@" install --yes --no-install-recommends "$name" >"$dir/log" 2>&1 && exit
tail -n 1 "$dir/log" >&2
exit 1
`;

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

function asRoot(...words: string[]): Promise<unknown> {
  const [command, ...args] = isRoot() ? words : ["sudo", "-n", ...words];
  return run(command as string, args);
}

function settings(values: Readonly<Record<string, string>>): string[] {
  return Object.entries(values).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
}

/** Copies the machine's sources, and adds their backports. */
function sourcesWithBackports(dir: string): string {
  const parts = join(dir, "sources");
  mkdirSync(parts);
  const release = /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? "unknown";
  for (const file of sourceFiles()) {
    writeFileSync(join(parts, file.replaceAll("/", "_")), withBackports(readFileSync(file, "utf8"), release));
  }
  return parts;
}

function sourceFiles(): string[] {
  const more = "/etc/apt/sources.list.d";
  const names = existsSync(more) ? readdirSync(more).filter((name) => /\.(list|sources)$/.test(name)) : [];
  return ["/etc/apt/sources.list", ...names.map((name) => join(more, name))].filter((file) => existsSync(file));
}

/** Adds the backports to each source of a release, in both of apt's formats. */
export function withBackports(sources: string, release: string): string {
  return sources
    .replace(new RegExp(`^(Suites:.*\\s${release})(?=\\s|$)`, "gm"), `$1 ${release}-backports`)
    .replace(new RegExp(`^(deb\\s.*\\s)${release}(\\s.*)$`, "gm"), `$&\n$1${release}-backports$2`);
}
