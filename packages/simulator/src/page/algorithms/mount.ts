import type { Policy } from "@floodgate/core";
import { h } from "@floodgate/pages/dom";
import { makeBoard } from "./board.js";
import { drawable, initialSettings, logPlayed, mostSent, type Played, type Settings, scenarioPlayed } from "./model/settings.js";
import { makeChoices } from "./parts/choices.js";

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

const mostRequests = 10_000;

/**
 * Shows rate limiting algorithms side by side: the same requests under each policy, on one timeline with a clock that plays, pauses and
 * moves. The algorithms are those of core, so each verdict is the one that production gives.
 *
 *     mount(document.querySelector("#algorithms"), { requests: timesOfTheHeaviestClient, policies: [slidingWindowLog({ limit: 100, window: "1m" })] });
 *
 * The page needs the styles in `algorithms.css` and in `shared/base.css`.
 */
export function mount(element: HTMLElement, options: MountOptions = {}): Mounted {
  const requests = options.requests === undefined ? undefined : [...options.requests].sort((a, b) => a - b).slice(0, mostRequests);
  const given = options.policies === undefined ? undefined : lanesOf(options.policies);
  let settings = options.settings ?? initialSettings;

  /** Everything follows from the settings: policies, requests, the timeline. */
  const show = (): Played => {
    const played = requests === undefined ? scenarioPlayed(settings, given) : logPlayed(settings, given, requests);
    choices.show(settings);
    board.show(played.policies, played.times, played.scale);
    return played;
  };
  const showResult = ({ times, scale }: Played): void => {
    const lastMs = times.at(-1);
    board.seek(lastMs === undefined ? 0 : lastMs - scale.startMs + scale.windowMs / 50);
  };
  const play = (played: Played): void => {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (still) showResult(played);
    else board.seek(0);
    if (!still && played.times.length > 0) board.play();
  };
  const change = (changed: Partial<Settings>): Played => {
    settings = { ...settings, ...changed };
    const played = show();
    options.onChange?.(settings);
    return played;
  };

  const choices = makeChoices((changed) => {
    const played = change(changed);
    if (!("scenario" in changed)) return board.atMs > played.scale.spanMs ? showResult(played) : undefined;
    play(played);
  });
  const board = makeBoard({
    send(atMs) {
      if (settings.sent.length < mostSent) change({ sent: [...settings.sent, Math.floor(atMs)].sort((a, b) => a - b) });
    },
    setPolicy: (lane, policy) => change({ edited: { ...settings.edited, [lane]: policy } }),
  });

  element.classList.add("algorithms");
  element.append(...(requests === undefined ? [choices.element] : []), board.element, makeLegend());
  showResult(show());
  return {
    set(next) {
      settings = next;
      showResult(show());
    },
    play: () => play(show()),
    close() {
      board.close();
      element.replaceChildren();
    },
  };
}

/** Lanes have numbers for names if there may be several of an algorithm. */
function lanesOf(policies: readonly Policy[]): Record<string, Policy> {
  return Object.fromEntries(policies.map((policy, i) => [String(i), drawable(policy)]));
}

/** What the marks of a lane mean. */
function makeLegend(): HTMLElement {
  const marks = {
    allowed: "allowed",
    limited: "limited",
    delayed: "allowed after a wait",
    room: "how many requests would pass at this moment",
    window: "the window that counts at this moment",
    bracket: "the window in which most requests passed",
  };
  return h(
    "div",
    { class: "key-to-marks small quiet" },
    h(
      "ul",
      { class: "row legend" },
      ...Object.entries(marks).map(([mark, text]) => h("li", {}, h("span", { class: `mark ${mark}` }), text)),
    ),
    h("p", {}, "Click on a lane to send a request at that moment. Drag to move the clock."),
  );
}
