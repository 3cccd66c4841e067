import { count, duration, plural, shortCount } from "@floodgate/pages/format";
import { Chart, intervalAt } from "@floodgate/pages/view/chart";
import { Card, FiguresTable } from "@floodgate/pages/view/elements";
import { legend } from "@floodgate/pages/view/fills";
import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import { axisTime, type Choice, limitText, percent, spanOf, type Timeline } from "../model.js";

interface TrafficProps {
  readonly choice: Choice;
  readonly timeline: Timeline;
}

/** Requests over time, and those that the chosen limit limits. */
export function Traffic({ choice: { point, rule }, timeline: { startMs, stepMs, requests } }: TrafficProps): VNode {
  const [share, setShare] = useState<number>();
  const limited = useMemo(() => {
    const counts = new Array<number>(requests.length).fill(0);
    const pairs = point?.limitedAt ?? [];
    for (let i = 0; i < pairs.length; i += 2) counts[pairs[i] as number] = pairs[i + 1] as number;
    return counts;
  }, [point]);
  const layers = useMemo(
    () => [
      { values: requests, fill: "var(--allowed)", stroke: "var(--allowed-ink)" },
      { values: limited, fill: "var(--limited)", stroke: "var(--limited-ink)" },
    ],
    [limited],
  );
  const moment = (interval: number): string => `${spanOf(startMs + interval * stepMs, startMs + (interval + 1) * stepMs, stepMs)} UTC`;
  const readout = (interval: number | undefined): string => {
    const shown = interval ?? requests.indexOf(Math.max(...requests));
    const all = plural(requests[shown] as number, "request");
    if (interval === undefined) return `Each step is ${duration(stepMs)}. The busiest had ${all}: ${moment(shown)}.`;
    const some = limited[shown] as number;
    return `${moment(shown)}: ${all}, ${count(some)} limited (${percent(some, requests[shown] as number)}).`;
  };
  const pointed = intervalAt(share, requests.length);
  return (
    <Card id="traffic" title="Requests over time">
      {legend({ allowed: "all requests", limited: rule?.grid && point ? `limited by ${limitText(rule.grid, point.limit)}` : "limited" })}
      <Chart
        startMs={startMs}
        stepMs={stepMs}
        layers={layers}
        height={220}
        axis={(value) => (Number.isInteger(value) ? shortCount(value) : "")}
        time={axisTime}
        utc
        atLeast={1}
        marked={pointed}
        onPoint={setShare}
      />
      <p class="pointed quiet">{readout(pointed)}</p>
      <FiguresTable
        caption="Requests over time"
        summary="The same as a table"
        of={limited}
        write={() => ({
          columns: ["Time (UTC)", "Requests", "Limited"],
          rows: requests.flatMap((all, i) => (all === 0 ? [] : [[moment(i), count(all), count(limited[i] ?? 0)]])),
        })}
      />
    </Card>
  );
}
