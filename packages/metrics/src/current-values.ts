import { inventory, slotsHeld } from "@floodgate/core/rules";
import { instruments, type NowId, nowIds } from "./instruments.js";
import { SeriesOf, type Total } from "./series.js";

const sum = (a: number, b: number): number => a + b;

/** Makes one number of two with the same attributes. */
const merge: Readonly<Record<NowId, (a: number, b: number) => number>> = {
  limit: Math.min,
  window: Math.max,
  shadow: Math.min,
  slotsHeld: sum,
  keys: sum,
  breakers: sum,
  rulesVersions: sum,
  rulesRefused: sum,
  rulesLoaded: Math.min,
};

/**
 * Reads what is in use in this process now.
 * @param ruleOf the name under which a rule is measured.
 */
export function readCurrentValues(ruleOf: (name: string) => string): Readonly<Record<NowId, Iterable<Total>>> {
  const { limits, stores, sources } = inventory();
  const series = new Map(nowIds.map((id) => [id, new SeriesOf(instruments[id], (attributes) => ({ attributes, value: Number.NaN }))]));
  const add = (id: NowId, number: number, ...attributes: string[]): void => {
    const known = (series.get(id) as SeriesOf<Total>).with(...attributes);
    known.value = Number.isNaN(known.value) ? number : merge[id](known.value, number);
  };

  for (const { name, policy, shadow } of limits) {
    // Rules above the cap are measured together, but have no limit together.
    if (ruleOf(name) !== name) continue;
    add("shadow", shadow ? 1 : 0, name);
    if (policy === undefined) continue;
    if (policy.algorithm === "concurrency") add("slotsHeld", 0, name);
    add("limit", policy.quota, name);
    add("window", policy.spanMs / 1000, name);
  }
  for (const name of slotsHeld()) add("slotsHeld", 1, ruleOf(name));

  for (const state of ["closed", "open", "half-open"]) add("breakers", 0, state, "");
  for (const store of stores) {
    if (store.size !== undefined) add("keys", store.size);
    for (const [server, state] of store.breakers) add("breakers", 1, state, server);
  }

  add("rulesRefused", 0);
  for (const source of sources) {
    if (source.version !== undefined) add("rulesVersions", 1, source.version.slice(0, 64));
    if (source.refused !== undefined) add("rulesRefused", 1);
    if (source.loadedAtMs !== undefined) add("rulesLoaded", source.loadedAtMs / 1000);
  }
  return Object.fromEntries(Array.from(series, ([id, numbers]) => [id, numbers.all()])) as Record<NowId, Iterable<Total>>;
}
