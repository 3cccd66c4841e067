import type { Policy } from "@floodgate/core";
import { path, useWidth } from "@floodgate/pages/view/elements";
import { render, type VNode } from "preact";
import { Player, speedFor } from "./model/player.js";
import { Run } from "./model/run.js";
import { drawable, initialSettings, maxSent, type Played, playedOf, type Settings } from "./model/settings.js";
import { Choices } from "./parts/forms.js";
import { Lane } from "./parts/lane.js";
import { Transport } from "./parts/transport.js";

export interface MountOptions {
  /** The times of requests of one client, in milliseconds since the epoch, in any order: they are played in place of the scenarios. */
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

/**
 * Shows rate limiting algorithms side by side: the same requests under each policy, on one timeline with a clock that plays, pauses and
 * moves. The algorithms are those of core, so each verdict is the one that production gives.
 *
 *     mount(document.querySelector("#algorithms"), { requests: timesOfTheHeaviestClient, policies: [slidingWindowLog({ limit: 100, window: "1m" })] });
 *
 * The page needs the styles in `algorithms.css` and in `@floodgate/pages/base.css`.
 */
export function mount(element: HTMLElement, options: MountOptions = {}): Mounted {
  const requests = options.requests === undefined ? undefined : [...options.requests].sort((a, b) => a - b);
  const given = options.policies === undefined ? undefined : lanesOf(options.policies);
  let settings = options.settings ?? initialSettings;
  /** Policies, requests and the timeline, which follow from the settings. */
  let played = playedOf(settings, given, requests);
  /** What the policies have done, by the names of their lanes. */
  let runs: BoardProps["runs"] = [];

  const draw = (): void => {
    const board = { settings, played, runs, player, change, choose: requests === undefined ? choose : undefined };
    render(<Board {...board} />, element);
  };
  const player = new Player(() => played.scale.spanMs, draw);
  const show = (): void => {
    const { spanMs } = played.scale;
    played = playedOf(settings, given, requests);
    const { policies, times, scale } = played;
    runs = Object.entries(policies).map(([name, policy]) => [name, new Run(policy, times, scale.windowMs)]);
    if (scale.spanMs !== spanMs) player.speed = speedFor(scale.spanMs);
    draw();
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
  const choose = (changed: Partial<Settings>): void => {
    change(changed);
    if ("scenario" in changed) play();
    else if (player.atMs > played.scale.spanMs) showResult();
  };

  element.classList.add("algorithms");
  player.speed = speedFor(played.scale.spanMs);
  show();
  showResult();
  return {
    set(next) {
      settings = next;
      show();
      showResult();
    },
    play,
    close() {
      player.pause();
      render(null, element);
    },
  };
}

interface BoardProps {
  readonly settings: Settings;
  readonly played: Played;
  readonly runs: readonly (readonly [name: string, run: Run])[];
  readonly player: Player;
  readonly change: (changed: Partial<Settings>) => void;
  /** Undefined if the requests are those of a log. */
  readonly choose: ((changed: Partial<Settings>) => void) | undefined;
}

function Board({ settings, played, runs, player, change, choose }: BoardProps): VNode {
  /** All timelines are as wide as the ruler. */
  const [width, ruler] = useWidth();
  const { sent, edited } = settings;
  const msAt = (fraction: number): number => fraction * played.scale.spanMs;
  const seek = (fraction: number): void => player.seek(msAt(fraction));
  const send = (atMs: number): void => {
    if (sent.length < maxSent) change({ sent: [...sent, Math.floor(atMs)].sort((a, b) => a - b) });
  };
  return (
    <>
      {choose && <Choices settings={settings} onChange={choose} />}
      <Transport player={player} played={played} width={width} ruler={ruler} onSeek={seek} onSend={() => send(player.atMs)} />
      <div class="lanes">
        {runs.map(([name, run]) => (
          <Lane
            key={name}
            run={run}
            scale={played.scale}
            width={width}
            atMs={player.atMs}
            onPolicy={(policy) => change({ edited: { ...edited, [name]: policy } })}
            onSeek={seek}
            onSend={(fraction) => send(msAt(fraction))}
          />
        ))}
      </div>
      {legend}
    </>
  );
}

/** Given policies may have one algorithm, so their lanes have numbers for names. */
function lanesOf(policies: readonly Policy[]): Record<string, Policy> {
  return Object.fromEntries(policies.map((policy, i) => [String(i), drawable(policy)]));
}

/** The marks of a lane, drawn as in the lane, by what they mean. */
const marks: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  allowed: { dots: "M9 6h0" },
  limited: { crosses: "M6 3l6 6m0 -6l-6 6" },
  "allowed after a wait": { rings: "M5 6a4 4 0 1 0 8 0a4 4 0 1 0 -8 0" },
  "how many requests would pass at this moment": { area: "M0 2H18V12H0Z", room: "M0 2H18" },
  "the window that counts at this moment": { window: "M0.5 0.5h17v11h-17z" },
  "the window in which most requests passed": { bracket: "M1 9v-5H17v5" },
};

const legend = (
  <div class="key-to-marks small quiet">
    <ul class="row legend">
      {Object.entries(marks).map(([text, shapes]) => (
        <li>
          <svg class="marks mark" aria-hidden="true">
            {Object.entries(shapes).map(([look, d]) => path(look, d))}
          </svg>
          {text}
        </li>
      ))}
    </ul>
    <p>Click on a lane to send a request at that moment. Drag to move the clock.</p>
  </div>
);
