// biome-ignore-all assist/source/organizeImports: grouped by subject

// Replays
export { simulate, type LogSummary, type MemoryNeed, type SimulatedRule, type SimulateOptions, type Simulation } from "./simulate.js";
export type { MeasuredClient, Peak, RuleMeasure } from "./measure/rule-meter.js";
export { type AppFields, type AppNames, appNames, type ReplayOptions } from "./replay/replay.js";

// Live
export { follow, type FollowOptions, type Growing, GrowingFile, GrowingStream } from "./live/follow.js";
export { type ShadowWatch, watchShadowRules, type WatchOptions } from "./live/watch-shadow-rules.js";
export type { LineBatch } from "./read/lines.js";

// Choosing numbers
export { compare, type ComparedPolicy, type CompareOptions, type Comparison, type DifferingClient } from "./compare/compare.js";
export { parsePolicy } from "./policies/policy-text.js";
export type { TrialOptions } from "./compare/trial.js";
export { type RateDistribution, suggest, type SuggestedRule, type Suggestion, type SuggestOptions } from "./suggest/suggest.js";
export type { Quantile } from "./measure/quantiles.js";

// Logs
export { fileSource, type LogSource } from "./read/source.js";
export { formatNames, formatOf } from "./formats/known.js";
export type { FieldReader, LogFormat, LogRequest, Skip } from "./formats/log-format.js";

// Reports
export { comparisonText, simulationLine, simulationText } from "./print/text.js";
export { suggestionText } from "./print/suggestion.js";
export { comparisonJson, simulationJson, suggestionJson } from "./print/json.js";
export { type Column, type Paint, sanitize, table } from "./print/table.js";

// The report's page
export { comparisonReport, type Made, reportHtml, reportJson, simulationReport, suggestionReport } from "./report/report.js";
export type { PolicyWords } from "./policies/options.js";
export { type Survey, survey, type SurveyOptions } from "./report/survey.js";
export type { Burst, Grid, GridPoint, ReportClient, ReportData, ReportRule, Timeline, Verdict } from "./report/contract.js";
