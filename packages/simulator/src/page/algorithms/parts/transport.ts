import { fill, h, say, svg } from "@floodgate/pages/dom";
import { clock, drawRuler, type Scale } from "../draw/timeline.js";
import type { Player } from "../player.js";

/** Play, pause, speed, send, and the ruler with all requests. It stays in view. */
export interface Transport {
  readonly element: HTMLElement;
  readonly ruler: HTMLElement;
  show(atMs: number, playing: boolean): void;
  /** Takes a timeline, and picks one of the speeds that fit it. */
  setRequests(times: readonly number[], scale: Scale): void;
  draw(): void;
}

const speeds = [0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800, 7200, 43_200];

/** About how long the whole timeline plays. */
const playMs = 18_000;

export function makeTransport(player: Player, onSend: () => void): Transport {
  const play = h("button", { type: "button", class: "primary play" }, "Play");
  const restart = h(
    "button",
    { type: "button", "aria-label": "Restart", title: "Restart" },
    svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: "M3 3v10M13 3v10L5.5 8z" })),
  );
  const send = h("button", { type: "button", class: "send" }, "Send");
  const speed = h("select", { "aria-label": "Speed" });
  const time = h("span", { class: "time quiet" });
  const marks = svg("svg", { class: "marks", "aria-hidden": "true" });
  const ruler = h(
    "div",
    {
      class: "ruler timeline",
      role: "slider",
      tabindex: 0,
      "aria-label": "Time. Arrows move it, Space plays and pauses, S sends a request.",
      "aria-valuemin": 0,
    },
    marks,
    h("div", { class: "veil" }),
    h("div", { class: "head" }),
  );
  play.addEventListener("click", () => player.toggle());
  restart.addEventListener("click", () => {
    player.seek(0);
    player.play();
  });
  send.addEventListener("click", onSend);
  speed.addEventListener("change", () => {
    player.speed = Number(speed.value);
  });
  const element = h(
    "div",
    { class: "transport" },
    h("div", { class: "row buttons" }, play, restart, send, h("label", { class: "speed" }, speed), time),
    ruler,
  );
  let scale: Scale | undefined;
  let requests: readonly number[] = [];
  return {
    element,
    ruler,
    show(atMs, playing) {
      const spanMs = scale?.spanMs ?? 0;
      ruler.style.setProperty("--at", String(atMs / spanMs));
      say(play, playing ? "Pause" : "Play");
      const text = `${clock(atMs, true)} of ${clock(spanMs)}`;
      say(time, text);
      ruler.setAttribute("aria-valuemax", String(spanMs));
      ruler.setAttribute("aria-valuenow", String(Math.round(atMs)));
      ruler.setAttribute("aria-valuetext", text);
    },
    setRequests(times, next) {
      requests = times;
      if (next.spanMs !== scale?.spanMs) {
        const best = [...speeds].reverse().find((factor) => next.spanMs / factor >= playMs * 0.75) ?? 1;
        const fitting = speeds.filter((factor) => factor >= best / 10 && factor <= best * 30);
        speed.replaceChildren(...fitting.map((factor) => h("option", { value: factor, selected: factor === best }, `${factor}×`)));
        player.speed = best;
      }
      scale = next;
    },
    draw() {
      if (scale !== undefined) fill(marks, ...drawRuler(requests, scale, ruler.clientWidth));
    },
  };
}
