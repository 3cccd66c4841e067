import type { Policy } from "@floodgate/core";
import { h, path, svg } from "@floodgate/pages/dom";
import { drawable, initialSettings, maxSent, playedOf, type Settings } from "./model/settings.js";
import { makeChoices } from "./parts/choices.js";
import { listenToKeys, listenToPointer } from "./parts/inputs.js";
import { type Lane, makeLane } from "./parts/lane.js";
import { makeTransport } from "./parts/transport.js";
import { Player } from "./player.js";

export interface MountOptions {
  /**
   * The times of requests of one client, in milliseconds since the epoch, in any order: they are played in place of the scenarios. The first
   * 10,000 of them are used.
   */
  readonly requests?: readonly number[] | undefined;
  /** A lane for each. Default: one of each algorithm, for 10 requests in 10 seconds. */
  readonly policies?: readonly Policy[] | undefined;
  /** What is chosen at first. Default: the edge of a window. */
  readonly settings?: Settings | undefined;
  /** Called with each choice of the person. */
  readonly onChange?: ((settings: Settings) => void) | undefined;
}

export interface Mounted {
  /** Shows other settings. */
  set(settings: Settings): void;
  /** Plays from the start, unless the person wants less motion. */
  play(): void;
  /** Stops the clock, and removes what was mounted. */
  close(): void;
}

const maxRequests = 10_000;

/**
 * Shows rate limiting algorithms side by side: the same requests under each policy, on one timeline with a clock that plays, pauses and
 * moves. The algorithms are those of core, so each verdict is the one that production gives.
 *
 *     mount(document.querySelector("#algorithms"), { requests: timesOfTheHeaviestClient, policies: [slidingWindowLog({ limit: 100, window: "1m" })] });
 *
 * The page needs the styles in `algorithms.css` and in `@floodgate/pages/base.css`.
 */
export function mount(element: HTMLElement, options: MountOptions = {}): Mounted {
  const requests = options.requests === undefined ? undefined : [...options.requests].sort((a, b) => a - b).slice(0, maxRequests);
  const given = options.policies === undefined ? undefined : lanesOf(options.policies);
  let settings = options.settings ?? initialSettings;
  /** Policies, requests and the timeline, which follow from the settings. */
  let played = playedOf(settings, given, requests);

  const lanes = new Map<string, Lane>();
  const player = new Player(
    () => played.scale.spanMs,
    (atMs, playing) => moveTo(atMs, playing),
  );
  const msAt = (fraction: number): number => fraction * played.scale.spanMs;
  const seek = (fraction: number): void => player.seek(msAt(fraction));
  const send = (atMs: number): void => {
    if (settings.sent.length < maxSent) change({ sent: [...settings.sent, Math.floor(atMs)].sort((a, b) => a - b) });
  };
  const sendNow = (): void => send(player.atMs);
  const transport = makeTransport(player, sendNow);
  const list = h("div", { class: "lanes" });
  const board = h("div", { class: "board" }, transport.element, list);
  listenToPointer(transport.ruler, board, seek);
  listenToKeys(
    transport.ruler,
    ({ shiftKey }) => {
      const last = played.scale.spanMs;
      const step = last / (shiftKey ? 20 : 200);
      return { now: player.atMs, last, step, page: 20 * step, move: (atMs) => player.seek(atMs) };
    },
    { " ": () => player.toggle(), s: sendNow, S: sendNow, Enter: sendNow },
  );
  const addLane = (name: string, policy: Policy): Lane => {
    const lane = makeLane(policy, (edited) => change({ edited: { ...settings.edited, [name]: edited } }));
    listenToPointer(lane.timeline, board, seek, (fraction) => send(msAt(fraction)));
    lanes.set(name, lane);
    list.append(lane.element);
    return lane;
  };

  const moveTo = (atMs: number, playing: boolean): void => {
    for (const lane of lanes.values()) lane.show(atMs);
    transport.show(atMs, playing);
  };
  const draw = (): void => {
    transport.draw();
    for (const lane of lanes.values()) lane.draw();
    moveTo(player.atMs, player.playing);
  };
  const show = (): void => {
    played = playedOf(settings, given, requests);
    const { policies, times, scale } = played;
    choices.show(settings);
    for (const [name, policy] of Object.entries(policies)) (lanes.get(name) ?? addLane(name, policy)).set(policy, times, scale);
    transport.setRequests(times, scale);
    if (board.isConnected) draw();
  };
  const showResult = (): void => {
    const { times, scale } = played;
    const lastMs = times.at(-1);
    player.seek(lastMs === undefined ? 0 : lastMs - scale.startMs + scale.windowMs / 50);
  };
  const play = (): void => {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      showResult();
      return;
    }
    player.seek(0);
    if (played.times.length > 0) player.play();
  };
  const change = (changed: Partial<Settings>): void => {
    settings = { ...settings, ...changed };
    show();
    options.onChange?.(settings);
  };
  const choices = makeChoices((changed) => {
    change(changed);
    if ("scenario" in changed) play();
    else if (player.atMs > played.scale.spanMs) showResult();
  });

  const resized = new ResizeObserver(draw);
  resized.observe(board);
  element.classList.add("algorithms");
  element.append(...(requests === undefined ? [choices.element] : []), board, makeLegend());
  show();
  showResult();
  return {
    set(next) {
      settings = next;
      show();
      showResult();
    },
    play() {
      show();
      play();
    },
    close() {
      player.pause();
      resized.disconnect();
      element.replaceChildren();
    },
  };
}

/** Given policies may have one algorithm, so their lanes have numbers for names. */
function lanesOf(policies: readonly Policy[]): Record<string, Policy> {
  return Object.fromEntries(policies.map((policy, i) => [String(i), drawable(policy)]));
}

/** What the marks of a lane mean. They are drawn as in the lane. */
function makeLegend(): HTMLElement {
  const marks: readonly (readonly [text: string, shapes: Readonly<Record<string, string>>])[] = [
    ["allowed", { dots: "M9 6h0" }],
    ["limited", { crosses: "M6 3l6 6m0 -6l-6 6" }],
    ["allowed after a wait", { rings: "M5 6a4 4 0 1 0 8 0a4 4 0 1 0 -8 0" }],
    ["how many requests would pass at this moment", { area: "M0 2H18V12H0Z", room: "M0 2H18" }],
    ["the window that counts at this moment", { window: "M0.5 0.5h17v11h-17z" }],
    ["the window in which most requests passed", { bracket: "M1 9v-5H17v5" }],
  ];
  return h(
    "div",
    { class: "key-to-marks small quiet" },
    h(
      "ul",
      { class: "row legend" },
      ...marks.map(([text, shapes]) => {
        const paths = Object.entries(shapes).map(([name, d]) => path(name, d));
        return h("li", {}, svg("svg", { class: "marks mark", "aria-hidden": "true" }, ...paths), text);
      }),
    ),
    h("p", {}, "Click on a lane to send a request at that moment. Drag to move the clock."),
  );
}
