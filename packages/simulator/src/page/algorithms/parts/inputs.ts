import type { Player } from "../player.js";

/**
 * Reports where a person drags on a timeline, and where they click without a drag.
 * @param onClick what a click does; default: the same as a drag.
 */
export function listenToPointer(
  timeline: HTMLElement,
  board: HTMLElement,
  onDrag: (fraction: number) => void,
  onClick?: (fraction: number) => void,
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
  const end = (event: PointerEvent): void => {
    if (event.type === "pointerup" && fromX !== undefined && !dragged) onClick?.(fractionAt(event));
    fromX = undefined;
    board.classList.remove("scrubbing");
  };
  timeline.addEventListener("pointerup", end);
  timeline.addEventListener("pointercancel", end);
}

/** The keys of the ruler. They work while it has the focus. */
export function listenToKeys(ruler: HTMLElement, player: Player, spanMs: () => number, send: (atMs: number) => void): void {
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
      " ": () => player.toggle(),
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
