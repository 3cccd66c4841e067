import type { Policy } from "@floodgate/core";
import { describePolicy, formatDuration } from "@floodgate/core/rules";
import { count, fill, h, say, svg } from "@floodgate/pages/dom";
import { drawState } from "@floodgate/pages/drawing";
import { shownView, stateText } from "../draw/picture.js";
import { drawTimeline, type Scale } from "../draw/timeline.js";
import { Run } from "../model/run.js";
import { wordsOf } from "../model/words.js";
import { makeEditor } from "./editor.js";

/** One policy: its words, its timeline, its state, and what it has counted. */
export interface Lane {
  readonly element: HTMLElement;
  /** Takes a click or a drag. */
  readonly timeline: HTMLElement;
  set(policy: Policy, times: readonly number[], scale: Scale): void;
  draw(): void;
  show(atMs: number): void;
}

export function makeLane(first: Policy, onPolicy: (policy: Policy) => void): Lane {
  const words = wordsOf(first);
  let policy = first;
  let run = new Run(policy, [], 1000);
  let scale: Scale = { startMs: 0, spanMs: 1, windowMs: 1000, limit: undefined };

  const numbers = h("span", { class: "numbers" });
  const editor = makeEditor(words.title, first, onPolicy);
  const marks = svg("svg", { class: "marks", role: "img" });
  const frame = h("div", { class: "frame", hidden: true });
  const timeline = h("div", { class: "timeline" }, marks, frame, h("div", { class: "veil" }), h("div", { class: "head" }));
  const picture = h("div", { class: "picture" });
  const caption = h("figcaption");
  const counts = { allowed: h("b", {}, "0"), limited: h("b", {}, "0"), delayed: h("b", {}, "0") };
  const delayed = h("li", { class: "delayed", hidden: true }, counts.delayed, " delayed");
  const most = h("b");
  const maxText = h("span");
  const maxItem = h("li", { class: "most" }, most, " ", maxText);
  const element = h(
    "section",
    { class: "lane" },
    h(
      "div",
      { class: "about" },
      h("h3", {}, words.title),
      h("p", { class: "advice small quiet" }, `${words.goodFor} `, h("span", {}, words.letsThrough)),
      h("details", { class: "edit" }, h("summary", {}, numbers), editor.element),
    ),
    timeline,
    h("figure", { class: "state-now" }, picture, caption),
    h(
      "ul",
      { class: "counts small" },
      maxItem,
      h("li", { class: "allowed" }, counts.allowed, " allowed"),
      h("li", { class: "limited" }, counts.limited, " limited"),
      delayed,
    ),
  );

  return {
    element,
    timeline,
    set(nextPolicy, times, nextScale) {
      policy = nextPolicy;
      scale = nextScale;
      run = new Run(policy, times, scale.windowMs);
      say(numbers, describePolicy(policy));
      editor.show(policy);
      const all = run.countsAt(Number.POSITIVE_INFINITY);
      marks.setAttribute(
        "aria-label",
        `${words.title}, all requests: ${all.allowed} allowed, ${all.limited} limited, at most ${all.most} in any ${formatDuration(scale.windowMs)}`,
      );
    },
    draw: () => fill(marks, ...drawTimeline(run, scale, timeline.clientWidth)),
    show(atMs) {
      const nowMs = Math.floor(scale.startMs + atMs);
      const moment = run.momentAt(nowMs);
      fill(picture, drawState(shownView(policy, moment, nowMs), nowMs));
      timeline.style.setProperty("--at", String((nowMs - scale.startMs) / scale.spanMs));
      say(caption, stateText(policy, moment, nowMs));
      const seen = run.countsAt(nowMs);
      for (const name of ["allowed", "limited", "delayed"] as const) say(counts[name], count(seen[name]));
      delayed.hidden = policy.algorithm !== "leaky-bucket";
      const { limit, windowMs } = scale;
      maxItem.classList.toggle("over", limit !== undefined && seen.most > limit);
      say(most, count(seen.most));
      say(maxText, `most within ${formatDuration(windowMs)}`);
      moveFrame(frame, policy, scale, nowMs);
    },
  };
}

/** Puts a frame around the window that counts now. */
function moveFrame(frame: HTMLElement, policy: Policy, { startMs, spanMs }: Scale, nowMs: number): void {
  const window = windowAt(policy, nowMs);
  frame.hidden = window === undefined;
  if (window === undefined) return;
  frame.style.setProperty("--wide", String(window.lengthMs / spanMs));
  frame.style.setProperty("--from", String((window.fromMs - startMs) / spanMs));
}

function windowAt(policy: Policy, nowMs: number): { readonly fromMs: number; readonly lengthMs: number } | undefined {
  if (policy.algorithm === "fixed-window") {
    return { fromMs: Math.floor(nowMs / policy.windowMs) * policy.windowMs, lengthMs: policy.windowMs };
  }
  const slides = policy.algorithm === "sliding-window-log" || policy.algorithm === "sliding-window-counter";
  return slides ? { fromMs: nowMs - policy.windowMs, lengthMs: policy.windowMs } : undefined;
}
