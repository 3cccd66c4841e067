import { lines, type Panel, row, stat } from "../panels.js";
import { decided, orZero, perSecond, rejected, series, share } from "../query.js";

export const dropping: readonly Panel[] = [
  row("Are we dropping requests?"),
  stat({
    title: "Requests",
    description: "Requests per second that matched a rule. A request under several rules counts once for each.",
    unit: "reqps",
    query: orZero(perSecond("requests")),
  }),
  stat({
    title: "Rejected",
    description:
      "Requests per second that were rejected: over a limit, or without a key. If this is not zero, the next row says by which rule, and the one after it whether to worry.",
    unit: "reqps",
    query: orZero(perSecond("requests", rejected)),
    thresholds: [[0.001, "yellow"]],
  }),
  stat({
    title: "Share rejected",
    description:
      "The share of all decisions that rejected a request. A steady share below 1 % is normal. If it jumps, look at the third row before you change a limit.",
    unit: "percentunit",
    query: orZero(share(perSecond("requests", rejected), perSecond("requests", decided))),
    thresholds: [
      [0.01, "yellow"],
      [0.1, "red"],
    ],
  }),
  stat({
    title: "Would be rejected",
    description:
      "Requests per second that rules in shadow mode would have rejected. Nobody is affected. Compare it with what you expected before you enforce a rule.",
    unit: "reqps",
    query: orZero(perSecond("requests", { result: "shadow-limited" })),
    thresholds: [[0.001, "blue"]],
  }),
  stat({
    title: "Decided without the store",
    description:
      "Requests per second that were decided while the store was down or too slow. With the default onStoreError they are let through, so no limit holds for them. Anything above zero is a fault: look at the fourth row.",
    unit: "reqps",
    query: orZero(perSecond("requests", { result: "degraded" })),
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
      "Everything that rules decided, stacked. Green passed, red was rejected, purple would be rejected by a shadow rule, orange was decided without the store. Red that rises with green is load; red alone is one client or an attack.",
    unit: "reqps",
    width: 24,
    height: 9,
    stacked: true,
    byResult: true,
    queries: { "{{result}}": perSecond("requests", {}, ["result"]) },
  }),
];
