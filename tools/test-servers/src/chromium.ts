import type { LaunchOptions } from "playwright-core";
import { program } from "./programs.js";

/**
 * Options for playwright-core that work as root and without the internet:
 * `const browser = await playwright.chromium.launch(chromiumOptions())`.
 *
 * playwright-core gives each browser an empty profile, and removes it when the browser is closed. Chromium writes to no other folder.
 */
export function chromiumOptions(): LaunchOptions {
  const executablePath = program("chromium");
  const env = { ...(process.env as Record<string, string>), HOME: noFolder, XDG_CONFIG_HOME: noFolder, XDG_CACHE_HOME: noFolder };
  // The sandbox does not run as root.
  return { executablePath, headless: true, chromiumSandbox: false, args: [...flags], env };
}

/** Chromium would leave crash reports and caches at home. */
const noFolder = "/dev/null";

const flags: readonly string[] = [
  "--no-sandbox",
  "--disable-gpu",
  // The shared memory of a container is small.
  "--disable-dev-shm-usage",
  // Whatever else would look for the internet.
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
