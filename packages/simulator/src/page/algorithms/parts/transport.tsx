import type { TargetedEvent, VNode } from "preact";
import { useMemo } from "preact/hooks";
import { clock, drawRuler } from "../draw/timeline.js";
import { type Player, speedFor, speeds } from "../model/player.js";
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
