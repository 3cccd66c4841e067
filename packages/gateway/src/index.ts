// biome-ignore-all assist/source/organizeImports: grouped by who needs it
import type { Settings } from "./config/settings.js";
import { parts } from "./parts.js";
import { run, type Running, type RunOptions, settingsFromCode } from "./run.js";

// From code
export type { Settings } from "./config/settings.js";
export type { Running, RunOptions } from "./run.js";

/**
 * Starts the decision server that gateways ask, as `floodgate serve` does.
 *
 *     const running = await serve({ rules: "limits.yaml", listen: "127.0.0.1:8081" });
 *
 * @throws FloodgateError if a setting or the rules are invalid, or an address is taken.
 */
export async function serve(settings: Partial<Settings>, options?: RunOptions): Promise<Running> {
  return run(settingsFromCode("serve", settings), parts.serve, options);
}

/**
 * Starts the reverse proxy, as `floodgate gateway` does.
 *
 *     const running = await gateway({ rules: "limits.yaml", upstream: "http://127.0.0.1:3000" });
 *
 * @throws FloodgateError if a setting or the rules are invalid, or an address is taken.
 */
export async function gateway(settings: Partial<Settings>, options?: RunOptions): Promise<Running> {
  return run(settingsFromCode("gateway", settings), parts.gateway, options);
}
