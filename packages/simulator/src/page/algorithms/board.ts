import type { Policy } from "@floodgate/core";
import { h } from "@floodgate/pages/dom";
import type { Scale } from "./draw/timeline.js";
import { type Lane, makeLane } from "./parts/lane.js";
import { makeTransport } from "./parts/transport.js";
import { Player } from "./player.js";

/** The lanes of all policies under one clock. */
export interface Board {
  readonly element: HTMLElement;
  /** Shows requests under policies, by the names of their lanes. */
  show(policies: Readonly<Record<string, Policy>>, times: readonly number[], scale: Scale): void;
  /** Where the clock is, in milliseconds from the start. */
  readonly atMs: number;
  seek(atMs: number): void;
  play(): void;
  close(): void;
}

export interface BoardActions {
  /** Somebody sends a request, in milliseconds from the start. */
  readonly send: (atMs: number) => void;
  readonly setPolicy: (lane: string, policy: Policy) => void;
}

export function makeBoard({ send, setPolicy }: BoardActions): Board {
  const lanes = new Map<string, Lane>();
  let scale: Scale = { startMs: 0, spanMs: 1, windowMs: 1000, limit: undefined };
  const player = new Player(
    () => scale.spanMs,
    (atMs, playing) => moveTo(atMs, playing),
  );
  const transport = makeTransport({
    toggle: () => (player.playing ? player.pause() : player.play()),
    restart: () => {
      player.seek(0);
      player.play();
    },
    send: () => send(player.atMs),
    setSpeed: (speed) => {
      player.speed = speed;
    },
  });
  const list = h("div", { class: "lanes" });
  const element = h("div", { class: "board" }, transport.element, list);

  const moveTo = (atMs: number, playing: boolean): void => {
    for (const lane of lanes.values()) lane.show(atMs);
    transport.show(atMs, playing);
  };
  const draw = (): void => {
    transport.draw();
    for (const lane of lanes.values()) lane.draw();
    moveTo(player.atMs, player.playing);
  };
  const resized = new ResizeObserver(draw);
  resized.observe(element);
  listenToPointer(transport.ruler, element, (fraction) => player.seek(fraction * scale.spanMs));
  listenToKeys(transport.ruler, player, () => scale.spanMs, send);

  const addLane = (name: string, policy: Policy): Lane => {
    const lane = makeLane(policy, (edited) => setPolicy(name, edited));
    listenToPointer(
      lane.timeline,
      element,
      (fraction) => player.seek(fraction * scale.spanMs),
      (fraction) => send(fraction * scale.spanMs),
    );
    lanes.set(name, lane);
    list.append(lane.element);
    return lane;
  };

  return {
    element,
    show(policies, times, next) {
      scale = next;
      for (const [name, policy] of Object.entries(policies)) {
        const lane = lanes.get(name) ?? addLane(name, policy);
        lane.setPolicy(policy);
        lane.setRequests(times, scale);
      }
      transport.setRequests(times, scale);
      if (element.isConnected) draw();
    },
    get atMs() {
      return player.atMs;
    },
    seek: (atMs) => player.seek(atMs),
    play: () => player.play(),
    close() {
      player.pause();
      resized.disconnect();
    },
  };
}

/**
 * Reports where a person drags on a timeline, and where they click without a drag.
 * @param onClick what a click does; default: the same as a drag.
 */
function listenToPointer(
  timeline: HTMLElement,
  board: HTMLElement,
  onDrag: (fraction: number) => void,
  onClick: ((fraction: number) => void) | undefined = undefined,
): void {
  let fromX: number | undefined;
  let dragged = false;
  const fractionAt = (event: PointerEvent): number => {
    const { left, width } = timeline.getBoundingClientRect();
    return Math.max(0, Math.min((event.clientX - left) / width, 1));
  };
  timeline.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    fromX = event.clientX;
    dragged = onClick === undefined;
    timeline.setPointerCapture(event.pointerId);
    if (dragged) onDrag(fractionAt(event));
  });
  timeline.addEventListener("pointermove", (event) => {
    if (fromX === undefined) return;
    dragged ||= Math.abs(event.clientX - fromX) > 4;
    board.classList.toggle("scrubbing", dragged);
    if (dragged) onDrag(fractionAt(event));
  });
  timeline.addEventListener("pointerup", (event) => {
    if (fromX !== undefined && !dragged) onClick?.(fractionAt(event));
    fromX = undefined;
    board.classList.remove("scrubbing");
  });
  timeline.addEventListener("pointercancel", () => {
    fromX = undefined;
    board.classList.remove("scrubbing");
  });
}

/** The keys of the ruler. They work while it has the focus. */
function listenToKeys(ruler: HTMLElement, player: Player, spanMs: () => number, send: (atMs: number) => void): void {
  ruler.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = spanMs() / (event.shiftKey ? 20 : 200);
    const actions: Readonly<Record<string, () => void>> = {
      ArrowLeft: () => player.seek(player.atMs - step),
      ArrowDown: () => player.seek(player.atMs - step),
      ArrowRight: () => player.seek(player.atMs + step),
      ArrowUp: () => player.seek(player.atMs + step),
      PageDown: () => player.seek(player.atMs - 20 * step),
      PageUp: () => player.seek(player.atMs + 20 * step),
      Home: () => player.seek(0),
      End: () => player.seek(spanMs()),
      " ": () => (player.playing ? player.pause() : player.play()),
      s: () => send(player.atMs),
      S: () => send(player.atMs),
      Enter: () => send(player.atMs),
    };
    const action = actions[event.key];
    if (action === undefined) return;
    event.preventDefault();
    action();
  });
}
