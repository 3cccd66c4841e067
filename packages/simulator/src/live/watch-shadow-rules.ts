import { type Decision, type DecisionEvent, type FloodgateEvent, observe, type Policy } from "@floodgate/core";
import { type InventoryLimit, inventory, isUnchecked } from "@floodgate/core/rules";
import { KeyIndex } from "../measure/per-client.js";
import { RuleMeter } from "../measure/rule-meter.js";
import { Tally } from "../read/requests.js";
import { unmeasuredNote } from "../replay/notes.js";
import { defaultMaxClients } from "../replay/replay.js";
import { measuredRule, type SimulatedRule, type SimulateOptions, type Simulation, summaryOf } from "../simulate.js";

export type WatchOptions = Pick<SimulateOptions, "maxClients" | "top">;

/** The shadow rules of this process, as they are measured. */
export interface ShadowWatch {
  /** What the rules would have done since the watch began, as `simulate` says it of a log with the same requests. */
  simulation(): Simulation;
  /** Stops listening. `simulation` goes on answering with what was measured. */
  stop(): void;
}

/** A rule that was heard of. */
interface Heard {
  /** Its own, not that of a plan. */
  readonly policy: Policy;
  readonly meter: RuleMeter;
  /** The policies that have decided: its own, those of plans, and the same after the rules were read again. */
  readonly decided: WeakSet<Policy>;
}

/**
 * Measures the rules in shadow mode of all middlewares in this process, from now on, on the requests that the app really gets.
 *
 *     const watch = watchShadowRules();
 *     app.get("/_shadow", (req, res) => res.type("text").send(simulationText(watch.simulation(), (_, text) => text)));
 *
 * Requests that `onStoreError: "allow"` or `"deny"` decides are left out: no rule was asked.
 *
 * A rule whose algorithm or times change is measured anew. Memory is bounded by `maxClients` for each rule.
 */
export function watchShadowRules({ maxClients = defaultMaxClients, top }: WatchOptions = {}): ShadowWatch {
  const rules = new Map<string, Heard>();
  const others = new Map<string, { bans: number; exempt: number; keyless: number }>();
  const tally = new Tally();
  /** The decisions of the current request. They are told one after the other. */
  let together: readonly Decision[] | undefined;
  const heard = ({ decision, key, name }: DecisionEvent): void => {
    let rule = rules.get(name);
    if (rule?.decided.has(decision.policy) !== true) {
      const own = shadowLimits().find((limit) => limit.name === name)?.policy ?? rule?.policy ?? decision.policy;
      if (rule === undefined || rule.policy.spanMs !== own.spanMs || rule.policy.algorithm !== own.algorithm) {
        rule = { policy: own, meter: new RuleMeter(own.spanMs, new KeyIndex(maxClients)), decided: new WeakSet() };
        rules.set(name, rule);
      }
      rule.decided.add(decision.policy);
    }
    // A clock may step back.
    tally.lastMs = Math.max(tally.lastMs, decision.atMs);
    // Decisions of one step share a list. One alone has a new list each time.
    if (decision.decisions !== together) {
      if (tally.requests === 0) tally.firstMs = decision.atMs;
      tally.lines++;
      tally.requests++;
      together = decision.decisions;
    }
    rule.meter.add(key, tally.lastMs, decision);
  };
  const stop = observe((event: FloodgateEvent) => {
    switch (event.type) {
      case "allowed":
      case "limited":
      case "shadow-limited":
      case "delayed":
      case "degraded":
        if (event.shadow && !isUnchecked(event.decision)) heard(event);
        break;
      case "banned":
      case "exempt":
      case "missing-key": {
        const counts = others.get(event.name) ?? { bans: 0, exempt: 0, keyless: 0 };
        counts[event.type === "banned" ? "bans" : event.type === "exempt" ? "exempt" : "keyless"]++;
        others.set(event.name, counts);
        break;
      }
    }
  });
  const simulation = (): Simulation => {
    const known = shadowLimits();
    const names = new Set([...rules.keys(), ...known.map(({ name }) => name)]);
    const measured = [...names].flatMap((name): SimulatedRule[] => {
      const words = known.find((limit) => limit.name === name);
      const policy = rules.get(name)?.policy ?? words?.policy;
      if (policy === undefined) return [];
      const meter = rules.get(name)?.meter ?? new RuleMeter(policy.spanMs, new KeyIndex(1));
      const by = words?.rule?.key ?? "its key";
      return [{ ...measuredRule(name, policy, meter, { top }), ...others.get(name), mode: "shadow", by }];
    });
    return { ...summaryOf(tally), rules: measured, rejected: 0, failed: {}, notes: unmeasuredNote(measured, "maxClients") };
  };
  return { simulation, stop };
}

function shadowLimits(): readonly InventoryLimit[] {
  return inventory().limits.filter(({ shadow }) => shadow);
}
