import { lines, type Panel, row } from "../panels.js";
import { byRule, now, orZero, perSecond, series } from "../query.js";

export const configuration: readonly Panel[] = [
  row("Rules, refunds and warnings"),
  lines({
    title: "Active versions of the rules",
    description:
      "Live sources of rules, by the version that is active. After a change all processes should move to the new version. If some stay behind, they refused it or cannot read it.",
    unit: "short",
    stacked: true,
    queries: { "{{version}}": now("rulesVersions", {}, ["version"]) },
  }),
  lines({
    title: "Refused rules",
    description:
      "Sources whose newest version is refused. The last good one stays active. The console and the event rules-refused say why; floodgate check tells it before you deploy.",
    unit: "short",
    queries: { "refused now": orZero(now("rulesRefused")) },
  }),
  lines({
    title: "Age of the rules",
    description:
      "How long ago each process last read its live rules and found them good. It stays near the time between two polls. If it grows, the process cannot read the file or reach the config database, or refuses what it reads.",
    unit: "s",
    queries: { "{{instance}}": `time() - max by (instance) (${series("rulesLoaded")})` },
  }),
  lines({
    title: "Keys changed by hand",
    description:
      "Keys per second that somebody blocked, unblocked or reset. The events blocked, unblocked and reset say which, and who did it.",
    unit: "ops",
    queries: { "{{rule}} {{result}}": perSecond("keyChanges", {}, ["rule", "result"]) },
  }),
  lines({
    title: "Reloads of rules",
    description: "New versions per second, accepted or refused.",
    unit: "ops",
    queries: { "{{result}}": perSecond("rulesReloads", {}, ["result"]) },
  }),
  lines({
    title: "Units charged and given back",
    description:
      "Units per second that allowed requests were charged, that refunds gave back, and that settlements charged or gave back. If most is given back, the cost that you ask first is too high, and rejects requests that would fit.",
    unit: "ops",
    queries: {
      charged: perSecond("unitsCharged"),
      refunded: perSecond("unitsRefunded"),
      "settled: {{result}}": perSecond("unitsSettled", {}, ["result"]),
    },
  }),
  lines({
    title: "Refunds and settlements",
    width: 12,
    description: "By result. Those that fail leave their key charged too much or too little: look at the store's errors at the same time.",
    unit: "ops",
    queries: {
      "refunds {{result}}": perSecond("refunds", {}, ["result"]),
      "settlements {{result}}": perSecond("settlements", {}, ["result"]),
    },
  }),
  lines({
    title: "Slots in use",
    width: 12,
    description: "Slots that requests in flight hold, by rule of concurrency. The limit is for each key, so the sum may be above it.",
    unit: "short",
    queries: { "{{rule}}": now("slotsHeld", {}, byRule) },
  }),
  lines({
    title: "Slots lost",
    width: 12,
    description:
      "Slots per second that came back while their request still ran. The process was stopped, or could not reach the store, for longer than hold: look at its event loop and at the store's errors. Requests with the result beside run beyond the limit.",
    unit: "ops",
    queries: { "{{rule}} {{result}}": perSecond("slotsLost", {}, ["rule", "result"]) },
  }),
  lines({
    title: "Warnings by code",
    width: 12,
    description: "Probable mistakes in how the app uses Floodgate. Each is also on the console of the process, with what to write instead.",
    unit: "ops",
    queries: { "{{code}}": perSecond("warnings", {}, ["code"]) },
  }),
];
