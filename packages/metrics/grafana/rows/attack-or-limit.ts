import { lines, type Panel, row, text } from "../panels.js";
import { byRule, decided, orZero, passed, percentile, perSecond, rejected, share } from "../query.js";

export const attackOrLimit: readonly Panel[] = [
  row("An attack, or a limit that is too low?"),
  text({
    title: "How to tell",
    content: `| | attack, or one broken client | limit too low |
|---|---|---|
| rejections per near-limit request | many: it does not slow down | about one or less: clients wait and return |
| requests near the limit | few | many, and rising with traffic |
| rules that reject | one, or suddenly all | always the same one |
| bans | rising | none |
| start | sudden | with the daily peak or a release |

**Attack:** leave the limit. Add a ban to the rule, or block the key. **Too low:** raise the limit, try it first as a shadow rule.

Metrics hold no keys. Floodgate's own dashboard shows the keys with most rejections.`,
  }),
  lines({
    title: "Share near the limit by rule",
    description:
      "Of the requests that a rule let through, the share that left its key less than 20 % of the limit. High: many clients live close to the limit, and a little growth will reject them. Raise the limit if those clients are good ones.",
    unit: "percentunit",
    max: 1,
    queries: { "{{rule}}": share(perSecond("nearLimit", {}, byRule), perSecond("requests", passed, byRule)) },
  }),
  lines({
    title: "Rejections per near-limit request",
    description:
      "How often a rule rejects for each request that comes near its limit. About 1 or less: clients slow down when told to, so think about a higher limit. Far above 10: somebody ignores Retry-After, so think about a ban.",
    unit: "short",
    logarithmic: true,
    queries: {
      "{{rule}}": share(`(${perSecond("requests", { result: "limited|blocked|banned" }, byRule)} > 0)`, perSecond("nearLimit", {}, byRule)),
    },
  }),
  lines({
    title: "Rules that reject",
    description:
      "How many rules reject somebody, of all rules with traffic. One rule: look at that rule. All at once: an attack on everything, or a release that makes more requests.",
    unit: "short",
    queries: {
      reject: orZero(`count(${perSecond("requests", rejected, byRule)} > 0)`),
      "have traffic": `count(${perSecond("requests", {}, byRule)} > 0)`,
    },
  }),
  lines({
    title: "Bans by rule",
    description:
      "Keys banned per second, by rule. A ban follows repeated rejections. Many bans: an attack from many addresses, or a limit that good clients cannot keep. In shadow mode a ban is only counted.",
    unit: "ops",
    queries: { "{{rule}} {{result}}": perSecond("bans", {}, ["rule", "result"]) },
  }),
  lines({
    title: "Mean cost of a request",
    description:
      "Units that a request asks for, by rule and result. If rejected requests are much dearer than allowed ones, the limit turns away the large requests, not the many: raise its capacity, or lower the cost.",
    unit: "short",
    queries: {
      "{{rule}} {{result}}": share(
        perSecond("unitsRequested", { result: "allowed|delayed|limited|blocked|banned|shadow-limited" }, ["rule", "result"]),
        perSecond("requests", { result: "allowed|delayed|limited|blocked|banned|shadow-limited" }, ["rule", "result"]),
      ),
    },
  }),
  lines({
    title: "Shadow rules: share that would be rejected",
    description:
      "What would happen if you enforced each shadow rule now. Enforce it when the share has been small and steady for some days, or when you know that those it would reject deserve it.",
    unit: "percentunit",
    max: 1,
    queries: {
      "{{rule}}": share(perSecond("requests", { result: "shadow-limited" }, byRule), perSecond("requests", decided, byRule)),
    },
  }),
  lines({
    title: "Not counted, or without a key",
    description:
      "Requests that a rule did not count, because their client is exempt or because they had no key (skipped), and requests rejected because they had no key. If missing keys rise, a client lost its credentials, or a release changed the header that holds the key.",
    unit: "reqps",
    queries: {
      "{{rule}} {{result}}": perSecond("requests", { result: "exempt|missing-key|skipped" }, ["rule", "result"]),
    },
  }),
  lines({
    title: "Time in the queue",
    description:
      "How long a leaky bucket holds the requests that it delays. If the 99th percentile nears your clients' timeout, lower maxDelayMs or the capacity: a rejected request is better than one that nobody waits for.",
    unit: "s",
    queries: {
      "half are below": percentile(0.5, "timeInQueue"),
      "99 % are below": percentile(0.99, "timeInQueue"),
    },
  }),
];
