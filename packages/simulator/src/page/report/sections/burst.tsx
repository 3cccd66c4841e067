import { toPolicy } from "@floodgate/core/rules";
import { count, duration, plural } from "@floodgate/pages/format";
import { Card, foreign, path } from "@floodgate/pages/view/elements";
import { legend } from "@floodgate/pages/view/fills";
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { mount } from "../../algorithms/mount.js";
import { type Burst, momentOf, timeOf, type Verdict } from "../model.js";

const rowHeight = 72;
const baseline = 42;

/** What the six algorithms make of the same requests of one client, on one timeline. */
export function BurstSection({ burst }: { readonly burst: Burst }): VNode {
  const { client, startMs, stepMs, steps, count: requests, verdicts } = burst;
  const most = Math.max(1, ...Array.from({ length: steps }, (_, i) => Math.max(...verdicts.map((each) => sumAt(each, i)))));
  const hasDelays = verdicts.some(({ longestDelayMs }) => longestDelayMs > 0);
  return (
    <Card id="burst" title="The same burst under each algorithm">
      <p class="lead quiet">
        The busiest moment of {foreign(client, "key")}: {plural(requests, "request")} in {duration(steps * stepMs)} from {momentOf(startMs)}{" "}
        UTC. All algorithms have the rule's limit and rate; each decides as if it were alone.
      </p>
      {legend({
        allowed: "allowed, above the line",
        ...(hasDelays && { delayed: "allowed after a wait" }),
        limited: "limited, below the line",
      })}
      <ul class="verdicts">{verdicts.map((verdict) => row(verdict, steps, most))}</ul>
      <p class="times" aria-hidden="true">
        {[0, 0.25, 0.5, 0.75, 1].map((part) => (
          <span>{timeOf(startMs + part * steps * stepMs)}</span>
        ))}
      </p>
      {/* The lanes know requests of one unit only. */}
      {burst.requests.every(([, cost]) => cost === 1) && <Player burst={burst} />}
    </Card>
  );
}

/** The same requests, to play: with buckets, windows and queues that move. They are made when somebody opens it. */
function Player({ burst }: { readonly burst: Burst }): VNode {
  const { startMs, requests, count: all, verdicts } = burst;
  const place = useRef<HTMLDivElement>(null);
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    if (!isOpen) return undefined;
    const mounted = mount(place.current as HTMLElement, {
      requests: requests.map(([afterMs]) => startMs + afterMs),
      policies: verdicts.map(({ policy }) => toPolicy("report", policy)),
    });
    return () => mounted.close();
  }, [isOpen, burst]);
  const which = requests.length < all ? `the first ${count(requests.length)} of these requests` : "these requests";
  return (
    <details class="player" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Play {which}, and watch buckets, windows and queues</summary>
      <div ref={place} />
    </details>
  );
}

function sumAt({ allowed, delayed, limited }: Verdict, step: number): number {
  return (allowed[step] as number) + (delayed[step] as number) + (limited[step] as number);
}

function row(verdict: Verdict, steps: number, most: number): VNode {
  const { algorithm, numbers, isOwn, allowed, delayed, limited, longestDelayMs } = verdict;
  const total = (counts: readonly number[]): number => counts.reduce((sum, each) => sum + each, 0);
  const up = (value: number): number => (value * (baseline - 3)) / most;
  const down = (value: number): number => (value * (rowHeight - baseline - 3)) / most;
  return (
    <li class={isOwn ? "own" : ""}>
      <div class="who">
        <b>{algorithm}</b>
        {isOwn && <span class="tag">this rule</span>}
        <small>{numbers}</small>
      </div>
      <div class="strip">
        <svg viewBox={`0 0 ${steps * 4} ${rowHeight}`} preserveAspectRatio="none" aria-hidden="true">
          {bars("allowed", allowed, (value) => [baseline - up(value), up(value)])}
          {bars("delayed", delayed, (value, i) => [baseline - up((allowed[i] as number) + value), up(value)])}
          {bars("limited", limited, (value) => [baseline + 1, Math.max(3, down(value))])}
          {path("base", `M0 ${baseline + 0.5}H${steps * 4}`)}
        </svg>
      </div>
      <p class="verdict quiet">
        <b>{count(total(allowed) + total(delayed))}</b> allowed, <b>{count(total(limited))}</b> limited
        {longestDelayMs > 0 && `, the longest wait ${duration(longestDelayMs)}`}
      </p>
    </li>
  );
}

function bars(look: string, counts: readonly number[], place: (value: number, step: number) => [y: number, height: number]): VNode {
  const drawn = counts.map((value, step) => {
    if (value === 0) return "";
    const [y, height] = place(value, step);
    return `M${step * 4} ${y.toFixed(1)}h3.4v${height.toFixed(1)}h-3.4z`;
  });
  return path(look, drawn.join(""));
}
