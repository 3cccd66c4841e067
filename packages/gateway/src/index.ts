import { resolveSettings } from "./config/resolve.js";
import type { Settings } from "./config/settings.js";
import { type Running, type RunOptions, run } from "./run/run.js";

export type { Settings } from "./config/settings.js";
export type { Running, RunOptions } from "./run/run.js";

/**
 * Starts the decision server that gateways ask, as `floodgate serve` does.
 *
 *     const running = await serve({ rules: "limits.yaml", listen: "127.0.0.1:8081" });
 *
 * @throws FloodgateError if a setting or the rules are invalid, or an address is taken.
 */
export async function serve(settings: Partial<Settings>, options?: RunOptions): Promise<Running> {
  return run("serve", resolveSettings("serve", { code: settings }).settings, options);
}

/**
 * Starts the reverse proxy, as `floodgate gateway` does.
 *
 *     const running = await gateway({ rules: "limits.yaml", upstream: "http://127.0.0.1:3000" });
 *
 * @throws FloodgateError if a setting or the rules are invalid, or an address is taken.
 */
export async function gateway(settings: Partial<Settings>, options?: RunOptions): Promise<Running> {
  return run("gateway", resolveSettings("gateway", { code: settings }).settings, options);
}
