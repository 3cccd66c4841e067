import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { aptInstall, noInstallInProgress } from "./apt.js";

/**
 * Finds a program, and installs the Debian package that has it if it is missing.
 * @throws Error if it is missing and cannot be installed.
 */
export async function program(find: () => string | undefined, packageName: string): Promise<string> {
  await noInstallInProgress();
  const known = find();
  if (known !== undefined) return known;
  await aptInstall(packageName);
  const installed = find();
  if (installed === undefined) throw new Error(`the package ${packageName} has none`);
  return installed;
}

/** How to install a program. */
export interface Advice {
  /** The Debian package. */
  readonly apt: string;
  /** The Homebrew formula. */
  readonly brew?: string;
}

/**
 * The same, with an error that says what to install.
 * @throws Error if it is missing and cannot be installed.
 */
export function programOrAdvice(name: string, find: () => string | undefined, { apt, brew }: Advice): Promise<string> {
  return program(find, apt).catch((error: Error) => {
    const orBrew = brew === undefined ? "" : `, or brew install ${brew}`;
    throw new Error(`There is no ${name} here, and ${error.message}. Install it: apt-get install ${apt}${orBrew}.`);
  });
}

/** Servers are there, and a user's PATH may lack it. */
const serverFolders: readonly string[] = ["/usr/local/sbin", "/usr/sbin"];

/** The first of these names that is on the PATH or in a folder of servers. */
export function onPath(...names: readonly string[]): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), ...serverFolders];
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find((file) => existsSync(file));
}
