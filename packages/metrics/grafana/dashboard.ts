import type { AnnotationQuery, Dashboard, VariableModel } from "@grafana/schema";
import { instruments, prometheusName } from "../src/index.js";
import { datasource, type Json, placed } from "./panels.js";
import { series } from "./query.js";
import { attackOrLimit } from "./rows/attack-or-limit.js";
import { configuration } from "./rows/configuration.js";
import { dropping } from "./rows/dropping.js";
import { store } from "./rows/store.js";
import { whom } from "./rows/whom.js";

// The source of floodgate.json. `npm run grafana` writes that file; test/grafana.test.ts checks that it is up to date.

/** A metric that each rule has. A rule whose policy is a function has no limit. */
const everyRule = prometheusName(instruments.shadow);

/** A variable above the dashboard. "All" matches series without the label too, as OpenTelemetry may send them. */
function variable(name: string, label: string, query: string) {
  const model = {
    type: "query",
    name,
    label,
    datasource,
    query: { qryType: 1, query, refId: "PrometheusVariableQueryEditor-VariableQuery" },
    multi: true,
    includeAll: true,
    allValue: ".*",
    current: { text: ["All"], value: ["$__all"] },
    refresh: 2,
    sort: 1,
    regex: "",
    hide: 0,
  } satisfies Json<VariableModel>;
  // Grafana writes it too, though its schema does not have it.
  return { ...model, definition: query };
}

/** Prometheus takes the format of a title besides what the schema says. */
function annotation(name: string, expr: string, titleFormat: string) {
  const target = { refId: "Anno", expr };
  const query = { name, datasource, enable: true, iconColor: "blue", target } satisfies Json<AnnotationQuery<typeof target>>;
  return { ...query, titleFormat };
}

/** The dashboard in Grafana's classic model, which Grafana 9.5 and newer import. */
export const dashboard = {
  title: "Floodgate",
  uid: "floodgate",
  description:
    "Rate limits: are we dropping requests, whose, by which rule, is it an attack or a limit that is too low, and is the store well.",
  tags: ["floodgate", "rate-limiting"],
  schemaVersion: 42,
  version: 1,
  editable: true,
  graphTooltip: 1,
  refresh: "30s",
  time: { from: "now-1h", to: "now" },
  timepicker: {},
  timezone: "browser",
  links: [],
  annotations: {
    list: [annotation("Rules reloaded", `sum by (result) (changes(${series("rulesReloads")}[2m])) > 0`, "Rules: {{result}}")],
  },
  templating: {
    list: [
      { type: "datasource", name: "datasource", label: "Prometheus", query: "prometheus", refresh: 1, regex: "", hide: 0 },
      variable("job", "Job", `label_values(${everyRule}, job)`),
      variable("instance", "Instance", `label_values(${everyRule}{job=~"$job"}, instance)`),
      variable("rule", "Rule", `label_values(${everyRule}{job=~"$job",instance=~"$instance"}, rule)`),
    ],
  },
  panels: placed([...dropping, ...whom, ...attackOrLimit, ...store, ...configuration]),
} satisfies Json<Dashboard>;
