import { count, latency, moment, plural } from "@floodgate/pages/format";
import { Card, foreign, path } from "@floodgate/pages/view/elements";
import type { VNode } from "preact";
import type { Latency, StoreInfo } from "../../contract.js";
import { joined, type SectionProps } from "./section.js";

/** Whether each store answers, and how fast. */
export const Stores = ({ figures: { overview, nowMs } }: SectionProps): VNode => (
  <Card id="stores" title="Stores" look="half" notes={<p>latency of the last minute</p>}>
    <div class="stack">{overview.stores.map((store) => storeEntry(store, moment(overview.scope.sinceMs, nowMs)))}</div>
    {overview.stores.length === 0 && <p class="empty quiet">No store is in use yet. A store shows here as soon as a limiter uses it.</p>}
  </Card>
);

function storeEntry(store: StoreInfo, since: string): VNode {
  const { text, look, means } = breakerWords[store.breaker ?? "closed"];
  const { rules } = store;
  return (
    <article key={store.id} class="store">
      <header class="row">
        <h3>{foreign(store.kind, "name")}</h3>
        <span class={`state ${look}`}>{text}</span>
        <span class="quiet">
          {rules.length > 0 && "counts "}
          {joined(rules.slice(0, 4), ", ")}
          {rules.length > 4 && ` and ${rules.length - 4} more`}
        </span>
      </header>
      {look !== "good" && <p class={`notice ${look}`}>{means}</p>}
      {store.latency === undefined ? <p class="quiet">{untimed([store])}</p> : latencyLine(store.latency)}
      {factsOf(store, since)}
    </article>
  );
}

function factsOf({ size, evictions, errors }: StoreInfo, since: string): VNode {
  const failures = errors.reduce((sum, each) => sum + each.count, 0);
  return (
    <ul class="row small quiet">
      {size !== undefined && <li>{plural(size, "key held", "keys held")}</li>}
      {evictions > 0 && (
        <li>
          <strong class="warn">{plural(evictions, "live key")} evicted</strong>
        </li>
      )}
      {failures > 0 && (
        <li>
          <strong class="bad">{plural(failures, "failure")}</strong>:{" "}
          {errors.map(({ code, count: some }, i) => [i > 0 && ", ", foreign(code), ` ${count(some)}`])}
        </li>
      )}
      {evictions + failures > 0 && <li>since {since}</li>}
    </ul>
  );
}

const lowestMs = 0.001;
const highestMs = 1000;

/** Half, nine tenths and 99 hundredths of the decisions on a scale from a microsecond to a second, each step ten times the one before. */
function latencyLine({ p50Ms, p90Ms, p99Ms, maxMs }: Latency): VNode {
  const x = (ms: number): number =>
    300 * (Math.log(Math.min(highestMs, Math.max(lowestMs, ms)) / lowestMs) / Math.log(highestMs / lowestMs));
  const points = [
    { name: "half within", ms: p50Ms, radius: 5 },
    { name: "90 % within", ms: p90Ms, radius: 4 },
    { name: "99 % within", ms: p99Ms, radius: 3 },
  ];
  const label = (ms: number, text: string, anchor: "start" | "middle" | "end"): VNode => (
    <text x={x(ms)} y={30} text-anchor={anchor}>
      {text}
    </text>
  );
  return (
    <div class="latency">
      <svg viewBox="-6 0 312 32" aria-hidden="true" class="scale">
        {path("rail", "M0 10H300")}
        {[0.001, 0.01, 0.1, 1, 10, 100, 1000].map((ms) => path("step", `M${x(ms)} 6v8`))}
        {label(lowestMs, "1 µs", "start")}
        {label(1, "1 ms", "middle")}
        {label(highestMs, "1 s", "end")}
        {path("span", `M${x(p50Ms)} 10H${x(p99Ms)}`)}
        {points.map(({ ms, radius }) => (
          <circle cx={x(ms)} cy={10} r={radius} />
        ))}
      </svg>
      <dl class="row pairs">
        {[...points, { name: "slowest", ms: maxMs }].map(({ name, ms }) => (
          <div>
            <dt>{name}</dt>
            <dd>{latency(ms)}</dd>
          </div>
        ))}
      </dl>
    </div>
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
