import { count, plural } from "@floodgate/pages/format";
import { Card, useWidth } from "@floodgate/pages/view/elements";
import type { VNode } from "preact";
import { useRef } from "preact/hooks";
import { onKeys, usePointer } from "../../algorithms/parts/inputs.js";
import { height, LimitsChart, limitScale, lineBottom } from "../limits-chart.js";
import { type Choice, type Grid, leastTouching, limitText, percent, policyText, share as shareText } from "../model.js";

const shares = [0, 0.001, 0.01, 0.05];

/** Other limits for the chosen rule: a line that one drags, and what the limit would do. */
export const Limits = ({ choice }: { readonly choice: Choice }): VNode => (
  <Card id="limits" title="Try another limit">
    <p class="lead quiet">
      Drag the line. Clients to the right of it would be limited. Each limit was replayed on the whole log, so the numbers are exact; the
      line stops at limits that were tried. <span class="keys">The arrow keys move it, too.</span>
    </p>
    {choice.rule?.grid === undefined ? (
      <p class="empty quiet">
        {choice.rule?.requests ? "No other limits were tried for this rule." : "No request of the log matches this rule."}
      </p>
    ) : (
      <div class="limits">
        <Plot choice={choice} grid={choice.rule.grid} />
        <Readout choice={choice} grid={choice.rule.grid} />
      </div>
    )}
  </Card>
);

interface GridProps {
  readonly choice: Choice;
  readonly grid: Grid;
}

function Plot({ choice, grid }: GridProps): VNode {
  const { point, pointNumber, choosePoint } = choice;
  const { points, option, policy } = grid;
  const [width, plot] = useWidth();
  const handle = useRef<HTMLDivElement>(null);
  const x = limitScale(grid, width);
  const pointer = usePointer((fraction) => {
    handle.current?.focus({ preventScroll: true });
    const distances = points.map(({ limit }) => Math.abs(x(limit) - fraction * width));
    choosePoint(distances.indexOf(Math.min(...distances)));
  });
  const keys = onKeys(() => ({ now: pointNumber, last: points.length - 1, step: 1, page: 5, move: choosePoint }));
  const { limit = 0, limited = 0, clientsLimited = 0 } = point ?? {};
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the handle does the same by keyboard, and would lose its focus to a press
    <div class="plot" ref={plot} style={{ height: `${height}px` }} onMouseDown={(event) => event.preventDefault()} {...pointer}>
      {width > 0 && (
        <LimitsChart grid={grid} chosen={pointNumber} width={width} unit={option === "limit" ? `limit per ${policy["window"]}` : option} />
      )}
      <div
        class="handle"
        role="slider"
        tabIndex={0}
        ref={handle}
        style={{ height: `${lineBottom}px`, transform: `translateX(${x(limit)}px)` }}
        onKeyDown={keys}
        aria-orientation="horizontal"
        aria-label="Limit"
        aria-valuemin={points[0]?.limit}
        aria-valuemax={points.at(-1)?.limit}
        aria-valuenow={limit}
        aria-valuetext={`${limitText(grid, limit)}: ${plural(limited, "request")} and ${plural(clientsLimited, "client")} limited`}
      >
        <span>{count(limit)}</span>
      </div>
    </div>
  );
}

function Readout({ choice: { rule, point, pointNumber, choosePoint }, grid }: GridProps): VNode {
  const { limit = 0, limited = 0, clientsLimited = 0 } = point ?? {};
  const { requests = 0, clients = 0 } = rule ?? {};
  const touched = (some: number, all: number, thing: string): VNode => (
    <p class="touches quiet">
      <b>{count(some)}</b> {thing} ({percent(some, all)} of {count(all)})
    </p>
  );
  const jump = (text: string, to: number): VNode => (
    <button type="button" onClick={() => choosePoint(to)}>
      {text}
    </button>
  );
  return (
    <div class="readout">
      <p class="limit">{limitText(grid, limit)}</p>
      {touched(limited, requests, `request${limited === 1 ? "" : "s"} limited`)}
      {touched(clientsLimited, clients, `client${clientsLimited === 1 ? "" : "s"} ever limited`)}
      <p class="change quiet">{changeText(grid, pointNumber)}</p>
      <p class="snippet">
        <code>{policyText(grid, limit)}</code>
      </p>
      <p class="row jumps quiet">
        <span>The least limit for</span>
        {shares.map((share) => jump(share === 0 ? "no client" : shareText(share), leastTouching(grid, clients, share)))}
        <span>of the clients, or</span>
        {jump(`back to ${count(grid.points[grid.own]?.limit ?? 0)}`, grid.own)}
      </p>
    </div>
  );
}

function changeText({ points, own }: Grid, chosen: number): string {
  const before = points[own];
  const after = points[chosen];
  if (before === undefined || after === undefined) return "";
  if (own === chosen) return "This is the limit as it is.";
  const more = after.limited - before.limited;
  if (more === 0) return `It limits as many requests as ${count(before.limit)} does.`;
  return `${plural(Math.abs(more), "request")} ${more > 0 ? "more" : "fewer"} than with ${count(before.limit)}.`;
}
