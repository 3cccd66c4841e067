import { axisTime, count, moment, rate, shortCount } from "@floodgate/pages/format";
import { Chart, intervalAt, type Layer } from "@floodgate/pages/view/chart";
import { Card, FiguresTable } from "@floodgate/pages/view/elements";
import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Burst, History } from "../../contract.js";
import { rangeWords, type SectionProps } from "./section.js";

const title = "Busiest second of each minute";

/** The busiest second of each minute: an average hides a burst. */
export function Bursts({ figures: { history: chosen, hour, nowMs } }: SectionProps): VNode {
  const history = chosen.range === "day" ? chosen : hour;
  const { bursts } = history;
  const [share, setShare] = useState<number>();
  const minutes = minutesOf(history);
  const layers = useMemo(() => layersOf(minutes), [history]);
  const pointed = intervalAt(share, minutes.length);
  const peak = highest(bursts);
  const shown = pointed === undefined ? peak : minutes[pointed];
  return (
    <Card id="bursts" title={title} look="half" notes={<p>{rangeWords[history.range]}</p>}>
      {peak === undefined && <p class="empty quiet">No minute with a request yet.</p>}
      <div hidden={peak === undefined}>
        <p class="readout quiet">{shown === undefined ? "No request in that minute." : sentenceOf(shown, shown === peak, nowMs)}</p>
        <figure aria-label={peak && `${title}. ${sentenceOf(peak, true, nowMs)}`}>
          <Chart
            startMs={Math.floor(history.startMs / 60_000) * 60_000}
            stepMs={60_000}
            layers={layers}
            height={168}
            atLeast={1}
            axis={shortCount}
            time={axisTime}
            marked={pointed}
            onPoint={setShare}
          />
        </figure>
        <div class="row foot">
          <FiguresTable
            caption={title}
            of={layers}
            write={() => ({
              columns: ["Second", "Requests", "Rejected", "Average of its minute"],
              rows: bursts
                .map((burst) => [moment(burst.secondMs, nowMs), range(burst), count(burst.limited), `${rate(burst.inMinute / 60)}/s`])
                .reverse(),
            })}
          />
        </div>
      </div>
    </Card>
  );
}

/** What several processes may have had together at most; then their surest count; then what of it passed; then the minute's average. */
function layersOf(minutes: readonly (Burst | undefined)[]): Layer[] {
  const values = (of: (burst: Burst) => number): (number | null)[] => minutes.map((burst) => (burst === undefined ? null : of(burst)));
  return [
    { bars: true, fill: "var(--line)", values: values((burst) => burst.atMost) },
    { bars: true, fill: "var(--limited)", values: values((burst) => burst.count) },
    { bars: true, fill: "var(--allowed)", values: values((burst) => burst.count - burst.limited) },
    { stroke: "var(--text)", values: values((burst) => burst.inMinute / 60) },
  ];
}

/** The burst of each minute. */
function minutesOf(history: History): (Burst | undefined)[] {
  const byMinute = new Map(history.bursts.map((burst) => [burst.minuteMs, burst]));
  const first = Math.floor(history.startMs / 60_000);
  const last = Math.floor((history.startMs + history.points * history.stepMs - 1) / 60_000);
  return Array.from({ length: last - first + 1 }, (_, i) => byMinute.get((first + i) * 60_000));
}

export const highest = (all: readonly Burst[]): Burst | undefined => [...all].sort((a, b) => b.count - a.count)[0];

const range = (burst: Burst): string =>
  burst.atMost > burst.count ? `${count(burst.count)} to ${count(burst.atMost)}` : count(burst.count);

function sentenceOf(burst: Burst, isPeak: boolean, nowMs: number): string {
  const rejected = burst.limited === 0 ? "" : `, ${count(burst.limited)} rejected`;
  const average = burst.inMinute / 60;
  return `${isPeak ? "Peak: " : ""}${range(burst)} in one second at ${moment(burst.secondMs, nowMs)}${rejected}. The average of its minute is ${rate(average)} per second.`;
}
