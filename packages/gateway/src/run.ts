import { setTimeout } from "node:timers/promises";
import { startAdmin } from "./admin/admin.js";
import { resolveSettings } from "./config/resolve.js";
import type { Command, Settings } from "./config/settings.js";
import type { Part, StartPart } from "./part.js";
import type { LogTarget } from "./service/log.js";
import { startService } from "./service/service.js";

/** A running service. */
export interface Running {
  /** Where it listens, by setting: `{ listen: "127.0.0.1:8080", admin: "127.0.0.1:9090" }`. */
  readonly addresses: Readonly<Record<string, string>>;
  /** Drains and closes: `/readyz` fails for `drainMs`, then no request is accepted, and those in flight end within `closeMs`. */
  close(): Promise<void>;
}

/** How a service runs, beside its settings. */
export interface RunOptions {
  /** Where log lines go. Default: standard output. */
  readonly log?: LogTarget;
}

/**
 * Starts a service with complete settings.
 * @throws FloodgateError if it cannot start. Then nothing is left running.
 */
export async function run(settings: Settings, parts: readonly StartPart[], options: RunOptions = {}): Promise<Running> {
  const service = await startService(settings, options.log, (rules) => {
    for (const { checkRules } of parts) checkRules?.(rules, settings);
  });
  const started: Part[] = [];
  let closed: Promise<void> | undefined;
  const close = (drainMs: number): Promise<void> => {
    closed ??= (async () => {
      service.drain();
      if (drainMs > 0) await setTimeout(drainMs);
      // The admin server is last, so that /readyz answers until the end.
      const [admin, others] = [started.filter(({ name }) => name === "admin"), started.filter(({ name }) => name !== "admin")];
      await Promise.all(others.map((part) => part.close()));
      await Promise.all(admin.map((part) => part.close()));
      await service.close();
    })();
    return closed;
  };
  try {
    const { admin } = settings;
    const startOwn: StartPart = async (own) => (admin === false ? undefined : startAdmin(own, admin));
    for (const start of [...parts, startOwn]) {
      const part = await start(service);
      if (part !== undefined) started.push(part);
    }
  } catch (error) {
    await close(0);
    throw error;
  }
  return { addresses: Object.fromEntries(started.map(({ name, address }) => [name, address])), close: () => close(settings.drainMs) };
}

/** Checks settings given in code. */
export function settingsFromCode(command: Command, options: Partial<Settings>): Settings {
  return resolveSettings(command, { code: options }).settings;
}
