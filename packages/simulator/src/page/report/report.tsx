import { Patterns } from "@floodgate/pages/view/fills";
import type { VNode } from "preact";
import { type ReportData, useChoice } from "./model.js";
import { BurstSection } from "./sections/burst.js";
import { Limits } from "./sections/limits.js";
import { Clients, Rules } from "./sections/rules.js";
import { About, Notes, Summary } from "./sections/summary.js";
import { Traffic } from "./sections/traffic.js";

export function Report({ data }: { readonly data: ReportData }): VNode {
  const choice = useChoice(data);
  const { rule } = choice;
  return (
    <>
      <Summary data={data} />
      {data.rules.length > 1 && <Rules choice={choice} />}
      {data.rules.some(({ requests }) => requests > 0) && <Limits choice={choice} />}
      {data.timeline && <Traffic choice={choice} timeline={data.timeline} />}
      {rule?.burst && <BurstSection burst={rule.burst} />}
      {rule && rule.heaviest.length > 0 && <Clients rule={rule} />}
      {data.notes.length > 0 && <Notes notes={data.notes} />}
      <About data={data} />
      <Patterns />
    </>
  );
}
