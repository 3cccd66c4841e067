import type { Policy } from "@floodgate/core";
import { describePolicy, formatDuration } from "@floodgate/core/rules";
import { count } from "@floodgate/pages/format";
import { drawState } from "@floodgate/pages/view/drawing";
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import { shownView, stateText } from "../draw/picture.js";
import { drawTimeline, type Scale } from "../draw/timeline.js";
import { wordsOf } from "../draw/words.js";
import type { Run } from "../model/run.js";
import { Editor } from "./forms.js";
import { usePointer } from "./inputs.js";

interface LaneProps {
  readonly run: Run;
  readonly scale: Scale;
  /** Of the timeline. */
  readonly width: number;
  readonly atMs: number;
  readonly onPolicy: (policy: Policy) => void;
  readonly onSeek: (fraction: number) => void;
  readonly onSend: (fraction: number) => void;
}

/** One policy: its words, its timeline, its state, and what it has counted. */
export function Lane({ run, scale, width, atMs, onPolicy, onSeek, onSend }: LaneProps): VNode {
  const { policy } = run;
  const { startMs, spanMs, windowMs, limit } = scale;
  const { title, goodFor, letsThrough } = wordsOf(policy);
  const drawn = useMemo(() => drawTimeline(run, scale, width), [run, width]);
  const editor = useMemo(() => <Editor title={title} policy={policy} onChange={onPolicy} />, [run]);
  const pointer = usePointer(onSeek, onSend);
  const nowMs = Math.floor(startMs + atMs);
  const moment = run.momentAt(nowMs);
  const seen = run.countsAt(nowMs);
  const all = run.countsAt(Number.POSITIVE_INFINITY);
  const inAny = formatDuration(windowMs);
  const counted = (name: "allowed" | "limited" | "delayed"): VNode => (
    <li class={name}>
      <b>{count(seen[name])}</b> {name}
    </li>
  );
  return (
    <section class="lane">
      <div class="about">
        <h3>{title}</h3>
        <p class="advice small quiet">
          {goodFor} <span>{letsThrough}</span>
        </p>
        <details class="edit">
          <summary>
            <span class="numbers">{describePolicy(policy)}</span>
          </summary>
          {editor}
        </details>
      </div>
      <div class="timeline" style={{ "--at": (nowMs - startMs) / spanMs }} {...pointer}>
        <svg
          class="marks"
          role="img"
          aria-label={`${title}, all requests: ${all.allowed} allowed, ${all.limited} limited, at most ${all.most} in any ${inAny}`}
        >
          {drawn}
        </svg>
        {frame(policy, scale, nowMs)}
        <div class="veil" />
        <div class="head" />
      </div>
      <figure class="state-now">
        <div class="picture">{drawState(shownView(policy, moment, nowMs), nowMs)}</div>
        <figcaption>{stateText(policy, moment, nowMs)}</figcaption>
      </figure>
      <ul class="counts small">
        <li class={`most ${limit !== undefined && seen.most > limit ? "over" : ""}`}>
          <b>{count(seen.most)}</b> most within {inAny}
        </li>
        {counted("allowed")}
        {counted("limited")}
        {policy.algorithm === "leaky-bucket" && counted("delayed")}
      </ul>
    </section>
  );
}

/** A frame around the window that counts now. */
function frame(policy: Policy, { startMs, spanMs }: Scale, nowMs: number): VNode | undefined {
  const isFixed = policy.algorithm === "fixed-window";
  if (!isFixed && policy.algorithm !== "sliding-window-log" && policy.algorithm !== "sliding-window-counter") return undefined;
  const { windowMs } = policy;
  const fromMs = isFixed ? Math.floor(nowMs / windowMs) * windowMs : nowMs - windowMs;
  return <div class="frame" style={{ "--wide": windowMs / spanMs, "--from": (fromMs - startMs) / spanMs }} />;
}
