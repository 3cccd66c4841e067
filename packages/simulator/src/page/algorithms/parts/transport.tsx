import type { TargetedEvent, VNode } from "preact";
import { useMemo } from "preact/hooks";
import { clock, drawRuler } from "../draw/timeline.js";
import type { Played } from "../model/settings.js";
import { onKeys, usePointer } from "./inputs.js";

interface TransportProps {
  readonly player: Player;
  readonly played: Played;
  /** Of the ruler, and the ruler itself. */
  readonly width: number;
  readonly ruler: { current: HTMLDivElement | null };
  readonly onSeek: (fraction: number) => void;
  readonly onSend: () => void;
}

const speeds = [0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800, 7200, 43_200];

/** About how long the whole timeline plays. */
const playMs = 18_000;

/** The speed that fits a timeline. */
export function speedFor(spanMs: number): number {
  return [...speeds].reverse().find((factor) => spanMs / factor >= playMs * 0.75) ?? 1;
}

/** Play, pause, speed, send, and the ruler with all requests. It stays in view. */
export function Transport({ player, played: { times, scale }, width, ruler, onSeek, onSend }: TransportProps): VNode {
  const { spanMs } = scale;
  const { atMs } = player;
  const best = speedFor(spanMs);
  const marks = useMemo(() => drawRuler(times, scale, width), [times, width]);
  const pointer = usePointer(onSeek);
  const restart = (): void => {
    player.seek(0);
    player.play();
  };
  const setSpeed = ({ currentTarget }: TargetedEvent<HTMLSelectElement>): void => {
    player.speed = Number(currentTarget.value);
  };
  const keys = onKeys(
    ({ shiftKey }) => {
      const step = spanMs / (shiftKey ? 20 : 200);
      return { now: player.atMs, last: spanMs, step, page: 20 * step, move: (to) => player.seek(to) };
    },
    { " ": () => player.toggle(), s: onSend, S: onSend, Enter: onSend },
  );
  const text = `${clock(atMs, true)} of ${clock(spanMs)}`;
  return (
    <div class="transport">
      <div class="row buttons">
        <button type="button" class="primary play" onClick={() => player.toggle()}>
          {player.playing ? "Pause" : "Play"}
        </button>
        <button type="button" aria-label="Restart" title="Restart" onClick={restart}>
          <svg viewBox="0 0 16 16" aria-hidden="true">
            <path d="M3 3v10M13 3v10L5.5 8z" />
          </svg>
        </button>
        <button type="button" class="send" onClick={onSend}>
          Send
        </button>
        <select aria-label="Speed" value={player.speed} onChange={setSpeed}>
          {speeds
            .filter((factor) => factor >= best / 10 && factor <= best * 30)
            .map((factor) => (
              <option value={factor}>{factor}×</option>
            ))}
        </select>
        <span class="time quiet">{text}</span>
      </div>
      <div
        class="ruler timeline"
        role="slider"
        tabIndex={0}
        ref={ruler}
        style={{ "--at": atMs / spanMs }}
        onKeyDown={keys}
        {...pointer}
        aria-label="Time. Arrows move it, Space plays and pauses, S sends a request."
        aria-valuemin={0}
        aria-valuemax={spanMs}
        aria-valuenow={Math.round(atMs)}
        aria-valuetext={text}
      >
        <svg class="marks" aria-hidden="true">
          {marks}
        </svg>
        <div class="veil" />
        <div class="head" />
      </div>
    </div>
  );
}

/** A clock that a person starts, stops and moves. */
export class Player {
  readonly #lengthMs: () => number;
  readonly #onMove: () => void;
  /** How many milliseconds go by in one. */
  speed = 1;
  #atMs = 0;
  #frame: number | undefined;
  #lastMs = 0;

  /** @param lengthMs returns where it stops. @param onMove is called at each step, and when it starts or stops. */
  constructor(lengthMs: () => number, onMove: () => void) {
    this.#lengthMs = lengthMs;
    this.#onMove = onMove;
  }

  get atMs(): number {
    return this.#atMs;
  }

  get playing(): boolean {
    return this.#frame !== undefined;
  }

  play(): void {
    if (this.playing) return;
    if (this.#atMs >= this.#lengthMs()) this.#atMs = 0;
    this.#lastMs = performance.now();
    this.#frame = requestAnimationFrame(this.#step);
    this.#onMove();
  }

  toggle(): void {
    if (this.playing) this.pause();
    else this.play();
  }

  pause(): void {
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame);
    this.#frame = undefined;
    this.#onMove();
  }

  seek(atMs: number): void {
    this.#atMs = Math.max(0, Math.min(atMs, this.#lengthMs()));
    this.#onMove();
  }

  readonly #step = (): void => {
    const nowMs = performance.now();
    // A tab in the background gets no frames: it goes on where it was.
    const passedMs = Math.min(nowMs - this.#lastMs, 100);
    this.#lastMs = nowMs;
    this.#frame = requestAnimationFrame(this.#step);
    this.seek(this.#atMs + passedMs * this.speed);
    if (this.#atMs >= this.#lengthMs()) this.pause();
  };
}
