import fc, { type PluginInstance } from "fast-check";
import { limitMs, runs } from "./runs.js";

/** The real clock, even if a test fakes it. */
const nowMs = performance.now.bind(performance);

/** `RUN_SECONDS` is for all properties, also for those that leave their number of runs to fast-check. */
fc.configureGlobal(runs(100));

/** fast-check's own limit ends a property in the middle of a run, which then goes on, with the stores and the clock of the next test. */
fc.installGlobalPlugin((): PluginInstance<unknown> => {
  const endMs = nowMs() + limitMs;
  return { decorateRun: (run) => (value) => (nowMs() < endMs ? run(value) : new fc.PreconditionFailure(true)) };
});
