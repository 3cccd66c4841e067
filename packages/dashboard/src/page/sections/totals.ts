import { say, visible } from "@floodgate/pages/dom";
import { FiguresTable } from "../charts/figures-table.js";
import { count, moment } from "../format.js";
import type { Model } from "../model.js";
import { results } from "../results.js";

/** Everything that was counted since the process started, as a table that one opens. */
export function totalsTable(model: Model): { readonly element: Element; update(): void } {
  const table = new FiguresTable("All that was counted, by rule");
  const summary = table.element.querySelector("summary");
  return {
    element: table.element,
    update() {
      const { overview } = model;
      if (overview === undefined) return;
      if (summary !== null) say(summary, `All figures since ${moment(overview.scope.sinceMs, model.now())}`);
      table.show(() => ({
        columns: ["Rule", ...results.map(({ label }) => label), "Units asked", "Units charged", "Bans"],
        rows: overview.totals.map(({ rule, counts, units, bans }) => [
          visible(rule, 60),
          ...results.map(({ id }) => count(counts[id] ?? 0)),
          count(units.asked),
          count(units.charged),
          count(bans),
        ]),
      }));
    },
  };
}
