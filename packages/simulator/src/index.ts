// biome-ignore-all assist/source/organizeImports: grouped by subject

// Replays
export { simulate, type LogSummary, type SimulatedRule, type SimulateOptions, type Simulation } from "./simulate.js";
export type { MeasuredClient, Peak, RuleMeasure } from "./measure/rule-meter.js";
export type { MemoryNeed } from "./measure/memory.js";
export type { ReplayOptions } from "./replay/replay-logs.js";
export type { AppFields } from "./replay/replay.js";

// Logs
export { fileSource, type LogSource } from "./read/source.js";
export { formatNames, formatOf } from "./formats/known.js";
export type { FieldReader, LogFormat, LogRequest, Skip } from "./formats/log-format.js";

// Reports
export { simulationText } from "./print/simulation.js";
export { simulationJson } from "./print/json.js";
export type { Paint } from "./print/terminal.js";
