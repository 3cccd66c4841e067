// biome-ignore-all assist/source/organizeImports: grouped by who needs it

// For tools that make dashboards, alerts or documents of the metrics. Apps import `/opentelemetry` or `/prometheus`.
export {
  type AttributeName,
  type Instrument,
  type InstrumentId,
  type InstrumentKind,
  instruments,
  prometheusLabel,
  prometheusName,
} from "./instruments.js";
