import { lines, type Panel, row, stat } from "../panels.js";
import { orZero, perSecond, rejectedRequests, series, share, withoutStore } from "../query.js";

export const dropping: readonly Panel[] = [
  row("Are we dropping requests?"),
  stat({
    title: "Requests",
    description: "Requests per second. Each counts once, whatever the number of rules and middlewares that it meets.",
    unit: "reqps",
    query: orZero(perSecond("outcomes")),
  }),
  stat({
    title: "Rejected",
    description:
      "Requests per second that were rejected, each once: over a limit, blocked or banned, without a key, or for lack of the store. If this is not zero, the next row says by which rule, and the one after it whether to worry.",
    unit: "reqps",
    query: orZero(perSecond("outcomes", rejectedRequests)),
    thresholds: [[0.001, "yellow"]],
  }),
  stat({
    title: "Share rejected",
    description:
      "The share of all requests that were rejected. A steady share below 1 % is normal. If it jumps, look at the third row before you change a limit.",
    unit: "percentunit",
    query: orZero(share(perSecond("outcomes", rejectedRequests), perSecond("outcomes"))),
    thresholds: [
      [0.01, "yellow"],
      [0.1, "red"],
    ],
  }),
  stat({
    title: "Would be rejected",
    description:
      "Decisions per second by which rules in shadow mode would have rejected a request. Nobody is affected. Compare it with what you expected before you enforce a rule.",
    unit: "reqps",
    query: orZero(perSecond("requests", { result: "shadow-limited" })),
    thresholds: [[0.001, "blue"]],
  }),
  stat({
    title: "Decided without the store",
    description:
      "Requests per second that were decided while the store was down or too slow. The panel below says how: failed-open (let through, so no limit holds), failed-closed (rejected with a 503), or by the fallback. Anything above zero is a fault: look at the fourth row.",
    unit: "reqps",
    query: orZero(perSecond("outcomes", withoutStore)),
    thresholds: [[0.001, "red"]],
  }),
  stat({
    title: "Processes",
    description:
      "Processes that report their rules. If one is missing, the numbers above lack its requests: see whether Prometheus can scrape it.",
    unit: "short",
    query: orZero(`count(count by (job, instance) (${series("shadow")}))`),
  }),
  lines({
    title: "Requests by result",
    description:
      "All requests, each once, stacked. Green passed, red was rejected, orange was decided without the store: failed-open passed, failed-closed was rejected. Red that rises with green is load; red alone is one client or an attack.",
    unit: "reqps",
    width: 24,
    height: 9,
    stacked: true,
    byResult: true,
    queries: { "{{result}}": perSecond("outcomes", {}, ["result"]) },
  }),
];
