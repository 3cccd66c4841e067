import { count, plural, visible } from "@floodgate/pages/format";
import { Card, foreign } from "@floodgate/pages/view/elements";
import type { VNode } from "preact";
import type { ReportData } from "../model.js";
import { momentOf, percent } from "../words.js";

/** What one should know to judge the numbers. */
export const Notes = ({ notes }: { readonly notes: readonly string[] }): VNode => (
  <Card id="notes" title="Before you rely on these numbers">
    <ul class="notes">
      {notes.map((note) => (
        <li>{foreign(note)}</li>
      ))}
    </ul>
  </Card>
);

export function About({ data }: { readonly data: ReportData }): VNode {
  const { logs, formats, lines, requests, skipped, madeAtMs, command } = data;
  const more = logs.length > 5 ? ` and ${count(logs.length - 5)} more` : "";
  const facts = {
    Logs: foreign(logs.slice(0, 5).join(", ") + more),
    Format: foreign(formats.join(", ")),
    Lines: `${plural(lines, "line")}, ${plural(requests, "request")}, ${count(skipped)} skipped (${percent(skipped, lines)})`,
    Made: `${momentOf(madeAtMs)} UTC`,
    Command: <code class="foreign">{visible(command, 2000)}</code>,
  };
  return (
    <footer>
      <dl>{Object.entries(facts).map(([name, fact]) => [<dt>{name}</dt>, <dd>{fact}</dd>])}</dl>
    </footer>
  );
}
