import type {
  FieldConfigSource,
  Panel as GrafanaPanel,
  GraphFieldConfig,
  TableFieldOptions,
  ThresholdsConfig,
  ValueMapping,
} from "@grafana/schema";
import type { Options as StatOptions } from "@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen";
import type { Options as TableOptions } from "@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen";
import type { Options as TextOptions } from "@grafana/schema/dist/esm/raw/composable/text/panelcfg/x/TextPanelCfg_types.gen";
import type { Options as LinesOptions } from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";

// How a panel of each kind looks in Grafana's JSON (the classic dashboard model, schema 42). The types are those that Grafana publishes.

/** A type of Grafana's as JSON has it: with the texts of its enums, and without what has a default. */
export type Json<T> = unknown extends T
  ? T
  : T extends string
    ? `${T}`
    : T extends number | boolean | null | undefined
      ? T
      : T extends readonly (infer Item)[]
        ? readonly Json<Item>[]
        : { readonly [Field in keyof T]?: Json<T[Field]> | undefined };

/** A panel of one kind, before it has its place. */
type PanelOf<Options, Field = object> = Json<Omit<GrafanaPanel, "options" | "fieldConfig">> & {
  readonly width: number;
  readonly height: number;
  readonly options: Json<Options>;
  readonly fieldConfig?: Json<FieldConfigSource<Field>>;
};

/** Grafana's names of units: a rate, a share of 1, seconds, a plain number. */
export type Unit = "reqps" | "ops" | "percentunit" | "s" | "short";

export interface Panel {
  readonly type: string;
  readonly title: string;
  readonly width: number;
  readonly height: number;
  readonly [field: string]: unknown;
}

export type Threshold = readonly [from: number, color: "yellow" | "orange" | "red" | "blue"];

interface Common {
  readonly title: string;
  readonly description: string;
  readonly unit: Unit;
}

/** The variable above the dashboard. */
export const datasource = { type: "prometheus", uid: "$datasource" };

/** A colour for each result and each state, the same in all panels. */
const colors: Readonly<Record<string, string>> = {
  allowed: "green",
  delayed: "blue",
  limited: "red",
  blocked: "dark-red",
  banned: "semi-dark-red",
  "shadow-limited": "purple",
  "failed-open": "orange",
  "failed-closed": "dark-orange",
  "fallback-allowed": "light-orange",
  "fallback-limited": "light-red",
  skipped: "text",
  uncounted: "text",
  "ambiguous-path": "dark-red",
  exempt: "text",
  "missing-key": "dark-red",
  closed: "green",
  "half-open": "yellow",
  open: "red",
};

/** A single number: its latest value, over a small graph of how it came there. */
export function stat(panel: Common & { query: string; thresholds?: readonly Threshold[] }): Panel {
  const { title, description, unit, query, thresholds = [] } = panel;
  return {
    type: "stat",
    title,
    description,
    width: 4,
    height: 4,
    datasource,
    targets: targets({ __auto: query }),
    fieldConfig: {
      defaults: { unit, min: 0, color: { mode: "thresholds" }, thresholds: stepsOf(thresholds) },
      overrides: [],
    },
    options: {
      reduceOptions: { calcs: ["lastNotNull"], fields: "", values: false },
      colorMode: thresholds.length === 0 ? "none" : "value",
      graphMode: "area",
      justifyMode: "auto",
      orientation: "auto",
      textMode: "value",
    },
  } satisfies PanelOf<StatOptions>;
}

export function lines(
  panel: Common & {
    /** By legend, which names the series by its labels: `{{rule}}`. */
    queries: Readonly<Record<string, string>>;
    width?: number;
    height?: number;
    stacked?: boolean;
    max?: number;
    logarithmic?: boolean;
    byResult?: boolean;
  },
): Panel {
  const { title, description, unit, queries, width = 8, height = 8, stacked = false, max, logarithmic = false, byResult = false } = panel;
  return {
    type: "timeseries",
    title,
    description,
    width,
    height,
    datasource,
    targets: targets(queries),
    fieldConfig: {
      defaults: {
        unit,
        min: logarithmic ? undefined : 0,
        max,
        color: { mode: "palette-classic-by-name" },
        custom: {
          drawStyle: "line",
          lineWidth: 1,
          fillOpacity: stacked ? 40 : 8,
          showPoints: "never",
          spanNulls: false,
          stacking: { mode: stacked ? "normal" : "none", group: "A" },
          scaleDistribution: logarithmic ? { type: "log", log: 10 } : { type: "linear" },
        },
      },
      overrides: Object.entries(byResult ? colors : {}).map(([name, color]) => ({
        matcher: { id: "byName", options: name },
        properties: [{ id: "color", value: { mode: "fixed", fixedColor: color } }],
      })),
    },
    options: {
      legend: { showLegend: true, displayMode: "table", placement: "bottom", calcs: ["lastNotNull", "max"] },
      tooltip: { mode: "multi", sort: "desc" },
    },
  } satisfies PanelOf<LinesOptions, GraphFieldConfig>;
}

/** A column of a table: one query, which must answer one series per row. */
export interface Column {
  readonly title: string;
  readonly unit: Unit;
  readonly query: string;
  /** What stands for a number, such as "yes" for 1. */
  readonly words?: Readonly<Record<string, string>>;
}

export function table(panel: Omit<Common, "unit"> & { label: string; columns: readonly Column[] }): Panel {
  const { title, description, label, columns } = panel;
  const valueColumn = (i: number): string => `Value #${refId(i)}`;
  return {
    type: "table",
    title,
    description,
    width: 24,
    height: 9,
    datasource,
    targets: columns.map(({ query }, i) => {
      return { refId: refId(i), expr: query, legendFormat: "__auto", format: "table", instant: true, range: false };
    }),
    transformations: [
      { id: "merge", options: {} },
      {
        id: "organize",
        options: {
          excludeByName: { Time: true },
          indexByName: { [label]: 0, ...Object.fromEntries(columns.map((_, i) => [valueColumn(i), i + 1])) },
          renameByName: { [label]: capitalized(label), ...Object.fromEntries(columns.map((column, i) => [valueColumn(i), column.title])) },
        },
      },
    ],
    fieldConfig: {
      defaults: { custom: { align: "auto", cellOptions: { type: "auto" }, filterable: true } },
      overrides: columns.map(({ title: name, unit, words = {} }) => ({
        matcher: { id: "byName", options: name },
        properties: [{ id: "unit", value: unit }, ...mappings(words)],
      })),
    },
    options: { showHeader: true, cellHeight: "sm" },
  } satisfies PanelOf<TableOptions, TableFieldOptions>;
}

export function text(panel: { title: string; content: string; width?: number; height?: number }): Panel {
  const { title, content, width = 8, height = 8 } = panel;
  return { type: "text", title, width, height, options: { mode: "markdown", content } } satisfies PanelOf<TextOptions>;
}

/** A heading: a question that the panels below it answer. */
export function row(title: string): Panel {
  return { type: "row", title, width: 24, height: 1, collapsed: false, panels: [] };
}

/** Gives panels their ids and places: from left to right, and on to the next line when a line is full. */
export function placed(panels: readonly Panel[]): Record<string, unknown>[] {
  let [x, y, lineHeight] = [0, 0, 0];
  return panels.map(({ width, height, ...panel }, i) => {
    if (x + width > 24) [x, y, lineHeight] = [0, y + lineHeight, 0];
    const gridPos = { x, y, w: width, h: height };
    [x, lineHeight] = [x + width, Math.max(lineHeight, height)];
    return { id: i + 1, gridPos, ...panel };
  });
}

function targets(queries: Readonly<Record<string, string>>): Record<string, unknown>[] {
  return Object.entries(queries).map(([legendFormat, expr], i) => ({ refId: refId(i), expr, legendFormat }));
}

function mappings(words: Readonly<Record<string, string>>) {
  const options = Object.fromEntries(Object.entries(words).map(([value, text]) => [value, { text }]));
  return Object.keys(words).length === 0 ? [] : [{ id: "mappings", value: [{ type: "value", options }] satisfies Json<ValueMapping[]> }];
}

function refId(i: number): string {
  return String.fromCharCode("A".charCodeAt(0) + i);
}

function stepsOf(thresholds: readonly Threshold[]): Json<ThresholdsConfig> {
  return { mode: "absolute", steps: [{ color: "green", value: null }, ...thresholds.map(([value, color]) => ({ value, color }))] };
}

function capitalized(word: string): string {
  return `${word.charAt(0).toUpperCase()}${word.slice(1)}`;
}
