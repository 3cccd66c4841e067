import { toPolicy } from "@floodgate/core/rules";
import { foreign, h, path, svg } from "@floodgate/pages/dom";
import { count, duration, plural } from "@floodgate/pages/format";
import { type Mounted, mount } from "../../algorithms/mount.js";
import type { Burst, Choice, Verdict } from "../model.js";
import { momentOf, timeOf } from "../words.js";
import { legend, section } from "./section.js";

const rowHeight = 72;
const baseline = 42;

/** What the six algorithms make of the same requests of one client, on one timeline. */
export function burstSection(choice: Choice): HTMLElement {
  const body = h("div", { class: "burst" });
  const whole = section("burst", "The same burst under each algorithm", body);
  const player = new Player();
  whole.append(player.element);
  let shown: Burst | undefined;
  choice.follow(() => {
    const burst = choice.rule?.burst;
    whole.hidden = burst === undefined;
    if (burst === undefined || burst === shown) return;
    shown = burst;
    body.replaceChildren(...content(burst));
    player.show(burst);
  });
  return whole;
}

/** The same requests, to play: with buckets, windows and queues that move. It is made when somebody opens it. */
class Player {
  readonly element: HTMLDetailsElement = h("details", { class: "player" });
  #burst: Burst | undefined;
  #mounted: Mounted | undefined;

  constructor() {
    this.element.addEventListener("toggle", () => this.#update());
  }

  show(burst: Burst): void {
    this.#burst = burst;
    const { requests, count: all } = burst;
    const which = requests.length < all ? `the first ${count(requests.length)} of these requests` : "these requests";
    this.element.replaceChildren(h("summary", {}, `Play ${which}, and watch buckets, windows and queues`), h("div"));
    // The lanes know requests of one unit only.
    this.element.hidden = requests.length === 0 || requests.some(([, cost]) => cost !== 1);
    this.#mounted?.close();
    this.#mounted = undefined;
    this.#update();
  }

  #update(): void {
    const place = this.element.lastElementChild;
    if (!this.element.open || this.#burst === undefined || this.#mounted !== undefined || this.element.hidden) return;
    const { startMs, requests, verdicts } = this.#burst;
    this.#mounted = mount(place as HTMLElement, {
      requests: requests.map(([afterMs]) => startMs + afterMs),
      policies: verdicts.map(({ policy }) => toPolicy("report", policy)),
    });
  }
}

function content(burst: Burst): HTMLElement[] {
  const { client, startMs, stepMs, steps, count: requests, verdicts } = burst;
  const most = Math.max(1, ...Array.from({ length: steps }, (_, i) => Math.max(...verdicts.map((each) => sumAt(each, i)))));
  const lead = h(
    "p",
    { class: "lead quiet" },
    "The busiest moment of ",
    foreign(client, "key"),
    `: ${plural(requests, "request")} in ${duration(steps * stepMs)} from ${momentOf(startMs)} UTC. All algorithms have the rule's limit and rate; each decides as if it were alone.`,
  );
  const hasDelays = verdicts.some(({ longestDelayMs }) => longestDelayMs > 0);
  const marks = legend(["allowed", "allowed, above the line"], ...(hasDelays ? [["delayed", "allowed after a wait"] as const] : []), [
    "limited",
    "limited, below the line",
  ]);
  const ticks = h(
    "p",
    { class: "times", "aria-hidden": "true" },
    ...[0, 0.25, 0.5, 0.75, 1].map((part) => h("span", {}, timeOf(startMs + part * steps * stepMs))),
  );
  return [lead, marks, h("ul", { class: "verdicts" }, ...verdicts.map((verdict) => row(verdict, steps, most))), ticks];
}

function sumAt({ allowed, delayed, limited }: Verdict, step: number): number {
  return (allowed[step] as number) + (delayed[step] as number) + (limited[step] as number);
}

function row(verdict: Verdict, steps: number, most: number): HTMLElement {
  const { algorithm, numbers, isOwn, allowed, delayed, limited, longestDelayMs } = verdict;
  const total = (counts: readonly number[]): number => counts.reduce((sum, each) => sum + each, 0);
  const passed = total(allowed) + total(delayed);
  const stopped = total(limited);
  const wait = longestDelayMs > 0 ? `, the longest wait ${duration(longestDelayMs)}` : "";
  const strip = svg("svg", { viewBox: `0 0 ${steps * 4} ${rowHeight}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  const up = (value: number): number => (value * (baseline - 3)) / most;
  const down = (value: number): number => (value * (rowHeight - baseline - 3)) / most;
  strip.append(
    path(
      "allowed",
      bars(allowed, (value) => [baseline - up(value), up(value)]),
    ),
    path(
      "delayed",
      bars(delayed, (value, i) => [baseline - up((allowed[i] as number) + value), up(value)]),
    ),
    path(
      "limited",
      bars(limited, (value) => [baseline + 1, Math.max(3, down(value))]),
    ),
    svg("line", { class: "base", x1: 0, x2: steps * 4, y1: baseline + 0.5, y2: baseline + 0.5 }),
  );
  return h(
    "li",
    { class: isOwn ? "own" : "" },
    h(
      "div",
      { class: "who" },
      h("b", {}, algorithm),
      isOwn ? h("span", { class: "tag" }, "this rule") : undefined,
      h("small", {}, numbers),
    ),
    h("div", { class: "strip" }, strip),
    h("p", { class: "verdict quiet" }, h("b", {}, count(passed)), " allowed, ", h("b", {}, count(stopped)), ` limited${wait}`),
  );
}

function bars(counts: readonly number[], place: (value: number, step: number) => [y: number, height: number]): string {
  return counts
    .map((value, step) => {
      if (value === 0) return "";
      const [y, height] = place(value, step);
      return `M${step * 4} ${y.toFixed(1)}h3.4v${height.toFixed(1)}h-3.4z`;
    })
    .join("");
}
