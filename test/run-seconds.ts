import fc from "fast-check";
import { runs } from "./runs.js";

/** `RUN_SECONDS` is for all properties, also for those that leave their number of runs to fast-check. */
fc.configureGlobal(runs(100));
