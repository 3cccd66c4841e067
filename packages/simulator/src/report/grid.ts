import type { Policy } from "@floodgate/core";
import type { Grid, GridPoint } from "./contract.js";
import type { LaneCounts } from "./lanes.js";
import { limitOption, policyWords } from "./policies.js";

/** What was found under the limits of one rule; undefined if none was tried. */
export function gridOf(
  own: Policy,
  counts: readonly (LaneCounts & { readonly policy: Policy })[],
  descending: Float64Array,
): Grid | undefined {
  if (counts.length === 0) return undefined;
  // Limits above one that limits nobody say nothing more.
  const enough = counts.findIndex(({ limited }) => limited === 0);
  const shown = counts.filter(({ policy }, i) => enough < 0 || i <= enough || policy.quota === own.quota);
  return {
    option: limitOption(own),
    points: shown.map(({ policy, limited, clientsLimited, limitedAt }): GridPoint => {
      return { limit: policy.quota, limited, clientsLimited, limitedAt: pairs(limitedAt) };
    }),
    own: shown.findIndex(({ policy }) => policy.quota === own.quota),
    needs: countedNeeds(descending),
    policy: policyWords(own),
  };
}

function pairs(counts: Uint32Array): number[] {
  const found: number[] = [];
  counts.forEach((count, i) => {
    if (count > 0) found.push(i, count);
  });
  return found;
}

/** How many clients have each need. Numbers above 100 are rounded up to two digits, so that there are at most some hundreds. */
function countedNeeds(descending: Float64Array): [number, number][] {
  const counts = new Map<number, number>();
  for (let i = descending.length - 1; i >= 0; i--) {
    const need = descending[i] as number;
    const unit = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, need))) - 1);
    const rounded = Math.ceil(need / unit) * unit;
    counts.set(rounded, (counts.get(rounded) ?? 0) + 1);
  }
  return [...counts];
}
