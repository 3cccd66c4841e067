import { foreign, h, path, svg } from "@floodgate/pages/dom";
import { count, latency, plural } from "@floodgate/pages/format";
import type { Latency, StoreInfo } from "../../contract.js";
import { keepRows, redrawn } from "../rows.js";
import { card, joined, type Section } from "./section.js";

/** Whether each store answers, and how fast. */
export function stores(): Section {
  const element = card("card half", "stores", "Stores", h("p", {}, "latency of the last minute"));
  const list = h("div", { class: "stack" });
  const empty = h("p", { class: "empty quiet" }, "No store is in use yet. A store shows here as soon as a limiter uses it.");
  element.append(list, empty);
  return {
    element,
    update({ overview }) {
      empty.hidden = overview.stores.length > 0;
      keepRows(
        list,
        overview.stores,
        ({ id }) => id,
        () => redrawn(h("article", { class: "store" }), storeWords),
      );
    },
  };
}

function storeWords(store: StoreInfo): (Node | undefined)[] {
  const { text, look, means } = breakerWords[store.breaker ?? "closed"];
  const more = store.rules.length > 4 ? ` and ${store.rules.length - 4} more` : "";
  return [
    h(
      "header",
      { class: "row" },
      h("h3", {}, foreign(store.kind, "name")),
      h("span", { class: `state ${look}` }, text),
      h("span", { class: "quiet" }, store.rules.length > 0 ? "counts " : "", ...joined(store.rules.slice(0, 4), ", "), more),
    ),
    look === "good" ? undefined : h("p", { class: `notice ${look}` }, means),
    store.latency === undefined ? h("p", { class: "quiet" }, untimed([store])) : latencyLine(store.latency),
    factsOf(store),
  ];
}

function factsOf(store: StoreInfo): Element | undefined {
  const errors = store.errors.reduce((sum, each) => sum + each.count, 0);
  const facts = [
    store.size === undefined ? undefined : plural(store.size, "key held", "keys held"),
    store.evictions === 0 ? undefined : h("strong", { class: "warn" }, `${plural(store.evictions, "live key")} evicted`),
    errors === 0
      ? undefined
      : h(
          "span",
          {},
          h("strong", { class: "bad" }, plural(errors, "failure")),
          ": ",
          ...store.errors.flatMap((each, i) => [i === 0 ? "" : ", ", foreign(each.code), ` ${count(each.count)}`]),
        ),
  ].filter((fact) => fact !== undefined);
  return facts.length === 0 ? undefined : h("ul", { class: "row small quiet" }, ...facts.map((fact) => h("li", {}, fact)));
}

const lowestMs = 0.001;
const highestMs = 1000;

/** Half, nine tenths and 99 hundredths of the decisions on a scale from a microsecond to a second, each step ten times the one before. */
function latencyLine(figures: Latency): Element {
  const x = (ms: number): number =>
    300 * (Math.log(Math.min(highestMs, Math.max(lowestMs, ms)) / lowestMs) / Math.log(highestMs / lowestMs));
  const points = [
    { name: "half within", ms: figures.p50Ms, radius: 5 },
    { name: "90 % within", ms: figures.p90Ms, radius: 4 },
    { name: "99 % within", ms: figures.p99Ms, radius: 3 },
  ];
  return h(
    "div",
    { class: "latency" },
    svg(
      "svg",
      { viewBox: "-6 0 312 32", "aria-hidden": "true", class: "scale" },
      path("rail", "M0 10H300"),
      ...[0.001, 0.01, 0.1, 1, 10, 100, 1000].map((ms) => path("step", `M${x(ms)} 6v8`)),
      ...(
        [
          [0.001, "1 µs", "start"],
          [1, "1 ms", "middle"],
          [1000, "1 s", "end"],
        ] as const
      ).map(([ms, text, anchor]) => svg("text", { x: x(ms), y: 30, "text-anchor": anchor }, text)),
      path("span", `M${x(figures.p50Ms)} 10H${x(figures.p99Ms)}`),
      ...points.map(({ ms, radius }) => svg("circle", { cx: x(ms), cy: 10, r: radius })),
    ),
    h(
      "dl",
      { class: "row pairs" },
      ...[...points, { name: "slowest", ms: figures.maxMs }].map(({ name, ms }) =>
        h("div", {}, h("dt", {}, name), h("dd", {}, latency(ms))),
      ),
    ),
  );
}

/** Why stores show no times. */
export function untimed(stores: readonly StoreInfo[]): string {
  return stores.every(({ breaker }) => breaker === undefined) ? "Decides in this process: not timed." : "No decision in the last minute.";
}

/** Whether a store is asked as usual. */
export const isWell = (store: StoreInfo): boolean => store.breaker === undefined || store.breaker === "closed";

const breakerWords = {
  closed: { text: "Answers", look: "good", means: "The store is asked for each decision." },
  "half-open": { text: "Being probed", look: "warn", means: "Single requests try whether it answers again." },
  open: {
    text: "Not asked",
    look: "bad",
    means: "It failed several times. Requests are decided without it until it answers again.",
  },
} as const;

/** The 99th percentile of the slowest store. */
export function slowest(stores: readonly StoreInfo[]): number | undefined {
  const all = stores.flatMap(({ latency }) => (latency === undefined ? [] : [latency.p99Ms]));
  return all.length === 0 ? undefined : Math.max(...all);
}
