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

/** Where a slider stands, its ends, and how it is moved. */
interface Slider {
  readonly now: number;
  readonly last: number;
  readonly step: number;
  readonly page: number;
  move(to: number): void;
}

/**
 * The keys that move a slider. They work while it has the focus.
 * @param others what other keys do, by their names.
 */
export function listenToKeys(
  element: HTMLElement,
  sliderOf: (event: KeyboardEvent) => Slider,
  others: Readonly<Record<string, () => void>> = {},
): void {
  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { now, last, step, page, move } = sliderOf(event);
    const moves: Readonly<Record<string, number>> = {
      ...{ ArrowLeft: now - step, ArrowDown: now - step, ArrowRight: now + step, ArrowUp: now + step },
      ...{ PageDown: now - page, PageUp: now + page, Home: 0, End: last },
    };
    const to = moves[event.key];
    const other = others[event.key];
    if (to === undefined && other === undefined) return;
    event.preventDefault();
    if (to === undefined) other?.();
    else move(to);
  });
}
