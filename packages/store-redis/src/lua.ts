/// <reference path="../../../texts.d.ts" />
// The Lua texts, as parts of the package's JavaScript: a bundle of an app has no files beside it.
import batch from "../lua/batch.lua";
import blocks from "../lua/blocks.lua";
import calendarWindow from "../lua/calendar-window.lua";
import charges from "../lua/charges.lua";
import concurrency from "../lua/concurrency.lua";
import debts from "../lua/debts.lua";
import fixedWindow from "../lua/fixed-window.lua";
import heldUnits from "../lua/held-units.lua";
import holding from "../lua/holding.lua";
import intervalBucket from "../lua/interval-bucket.lua";
import leakyBucket from "../lua/leaky-bucket.lua";
import lean from "../lua/lean.lua";
import leanLimit from "../lua/lean-limit.lua";
import prelude from "../lua/prelude.lua";
import sharedBucket from "../lua/shared-bucket.lua";
import slidingWindowCounter from "../lua/sliding-window-counter.lua";
import slidingWindowLog from "../lua/sliding-window-log.lua";
import smoothBucket from "../lua/smooth-bucket.lua";
import steps from "../lua/steps.lua";
import twoCounters from "../lua/two-counters.lua";
import values from "../lua/values.lua";
import windows from "../lua/windows.lua";

/** By name. Those of algorithms have the names of core's: see `Twin`. */
export const lua: Readonly<Record<string, string>> = {
  batch,
  blocks,
  "calendar-window": calendarWindow,
  charges,
  concurrency,
  debts,
  "fixed-window": fixedWindow,
  "held-units": heldUnits,
  holding,
  "interval-bucket": intervalBucket,
  "leaky-bucket": leakyBucket,
  lean,
  "lean-limit": leanLimit,
  prelude,
  "shared-bucket": sharedBucket,
  "sliding-window-counter": slidingWindowCounter,
  "sliding-window-log": slidingWindowLog,
  "smooth-bucket": smoothBucket,
  steps,
  "two-counters": twoCounters,
  values,
  windows,
};
