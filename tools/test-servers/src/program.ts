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

/** The first of these names that is on the PATH. */
export function onPath(...names: readonly string[]): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find((file) => existsSync(file));
}
