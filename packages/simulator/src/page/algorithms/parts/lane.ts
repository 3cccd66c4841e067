import type { Policy } from "@floodgate/core";
import { describePolicy, formatDuration } from "@floodgate/core/rules";
import { count, h, say } from "@floodgate/pages/dom";
import { drawPicture, stateText } from "../draw/picture.js";
import type { Theme } from "../draw/theme.js";
import { drawTimeline, type Scale } from "../draw/timeline.js";
import { Run } from "../model/run.js";
import { wordsOf } from "../model/words.js";
import { makeEditor } from "./editor.js";

/** One policy: its words, its timeline, its state, and what it has counted. */
export interface Lane {
  readonly element: HTMLElement;
  /** Takes a click or a drag. */
  readonly timeline: HTMLElement;
  setPolicy(policy: Policy): void;
  /** Decides all requests again. */
  setRequests(times: readonly number[], scale: Scale): void;
  /** Draws what does not move. */
  draw(theme: Theme): void;
  /** Draws the state at a moment. Draw all lanes, then `say` all: text on a canvas waits for the styles of what has changed before it. */
  drawState(atMs: number, theme: Theme): void;
  /** Writes what was drawn last. */
  say(): void;
}

export function makeLane(first: Policy, onPolicy: (policy: Policy) => void): Lane {
  const words = wordsOf(first);
  let policy = first;
  let run = new Run(policy, [], 1000);
  let scale: Scale = { startMs: 0, spanMs: 1, windowMs: 1000, limit: undefined };

  const numbers = h("span", { class: "numbers" });
  const editor = makeEditor(words.title, first, onPolicy);
  const canvas = h("canvas", { class: "marks", role: "img" });
  const frame = h("div", { class: "frame", hidden: true });
  const timeline = h("div", { class: "timeline" }, canvas, frame, h("div", { class: "veil" }), h("div", { class: "head" }));
  const picture = h("canvas", { class: "picture", role: "img" });
  const caption = h("figcaption");
  const counts = { allowed: h("b", {}, "0"), limited: h("b", {}, "0"), delayed: h("b", {}, "0") };
  const delayed = h("li", { class: "delayed", hidden: true }, counts.delayed, " delayed");
  const most = h("b");
  const mostText = h("span");
  const mostItem = h("li", { class: "most" }, most, " ", mostText);
  const element = h(
    "section",
    { class: "lane" },
    h(
      "div",
      { class: "about" },
      h("h3", {}, words.title),
      h("p", { class: "advice" }, `${words.goodFor} `, h("span", {}, words.letsThrough)),
      h("details", { class: "edit" }, h("summary", {}, numbers), editor.element),
    ),
    timeline,
    h("figure", { class: "state-now" }, picture, caption),
    h(
      "ul",
      { class: "counts" },
      mostItem,
      h("li", { class: "allowed" }, counts.allowed, " allowed"),
      h("li", { class: "limited" }, counts.limited, " limited"),
      delayed,
    ),
  );

  const setPolicy = (next: Policy): void => {
    policy = next;
    say(numbers, describePolicy(policy));
    editor.show(policy);
  };
  setPolicy(first);

  let nowMs = 0;
  let moment = run.momentAt(nowMs);
  const write = (): void => {
    timeline.style.setProperty("--at", String((nowMs - scale.startMs) / scale.spanMs));
    say(caption, stateText(policy, moment, nowMs));
    const seen = run.countsAt(nowMs);
    for (const name of ["allowed", "limited", "delayed"] as const) say(counts[name], count(seen[name]));
    delayed.hidden = policy.algorithm !== "leaky-bucket";
    const { limit, windowMs } = scale;
    mostItem.classList.toggle("over", limit !== undefined && seen.most > limit);
    say(most, count(seen.most));
    say(mostText, `most within ${formatDuration(windowMs)}`);
    moveFrame(frame, policy, scale, nowMs);
  };

  return {
    element,
    timeline,
    setPolicy,
    setRequests(times, next) {
      scale = next;
      run = new Run(policy, times, next.windowMs);
      const all = run.countsAt(Number.POSITIVE_INFINITY);
      canvas.setAttribute(
        "aria-label",
        `${words.title}, all requests: ${all.allowed} allowed, ${all.limited} limited, at most ${all.most} in any ${formatDuration(next.windowMs)}`,
      );
      picture.setAttribute("aria-label", `${words.title}: the state at this moment, as below`);
    },
    draw: (theme) => drawTimeline(canvas, timeline.clientWidth, run, scale, theme),
    drawState(atMs, theme) {
      nowMs = Math.floor(scale.startMs + atMs);
      moment = run.momentAt(nowMs);
      drawPicture(picture, policy, moment, nowMs, theme);
    },
    say: write,
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
