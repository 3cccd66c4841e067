import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/**
 * Installs a package on Debian or a similar system, from the machine's sources and their backports: as root, or with sudo in CI.
 * Concurrent calls are safe: apt's lock makes them take turns.
 * @throws Error if the package cannot be installed.
 */
export async function aptInstall(name: string): Promise<void> {
  if (!existsSync("/usr/bin/apt-get")) throw new Error("this system has no apt-get");
  if (!isRoot() && process.env["CI"] === undefined) throw new Error("installing it takes root");

  // Separate package lists, so that the machine's lists do not change.
  const dir = mkdtempSync(join(tmpdir(), "floodgate-apt-"));
  const lists = join(dir, "lists");
  mkdirSync(join(lists, "partial"), { recursive: true });
  try {
    const options = settings({
      "Dir::Etc::SourceList": "/dev/null",
      "Dir::Etc::SourceParts": sourcesWithBackports(dir),
      "Dir::State::Lists": lists,
      "Acquire::http::Timeout": "10",
      "Acquire::https::Timeout": "10",
      "DPkg::Lock::Timeout": "300",
    });
    const apt = (...words: string[]) => asRoot("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", ...options, ...words);
    // An unreachable source may not matter. If the package is missing, the next step fails.
    await apt("update").catch(() => {});
    await apt("install", "--yes", "--no-install-recommends", name);
  } catch (error) {
    throw new Error(`apt-get said: ${lastLine((error as { stderr?: string }).stderr || String(error))}`);
  } finally {
    // Some files belong to root now.
    await asRoot("rm", "-r", dir).catch(() => rmSync(dir, { recursive: true }));
  }
}

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

function lastLine(text: string): string | undefined {
  return text.trim().split("\n").at(-1);
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
