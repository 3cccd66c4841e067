// For command lines: the settings without the servers.
// biome-ignore-all assist/source/organizeImports: grouped by subject

export {
  type Command,
  defaultOf,
  flagOf,
  type HeadersSetting,
  type LogLevel,
  type Resolved,
  type Setting,
  type Settings,
  settingsOf,
  table,
  variableOf,
} from "./config/settings.js";
export type { ValueType } from "./config/value-types.js";
export { resolveSettings, type Sources } from "./config/resolve.js";
export { SettingsError } from "./config/problems.js";
export { printSettings } from "./config/print.js";
