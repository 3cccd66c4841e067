import type { PointerEventHandler, TargetedPointerEvent } from "preact";
import { useRef } from "preact/hooks";

/** What listens to a pointer. */
export type PointerHandlers = Readonly<
  Record<"onPointerDown" | "onPointerMove" | "onPointerUp" | "onPointerCancel", PointerEventHandler<HTMLElement>>
>;

/**
 * Reports where a person drags on a timeline, and where they click without a drag.
 * @param onClick what a click does; default: the same as a drag.
 */
export function usePointer(onDrag: (fraction: number) => void, onClick?: (fraction: number) => void): PointerHandlers {
  const pressed = useRef({ fromX: 0, isDown: false, isDrag: false }).current;
  const fractionAt = ({ currentTarget, clientX }: TargetedPointerEvent<HTMLElement>): number => {
    const { left, width } = currentTarget.getBoundingClientRect();
    return Math.max(0, Math.min((clientX - left) / width, 1));
  };
  const end = ({ currentTarget }: TargetedPointerEvent<HTMLElement>): void => {
    pressed.isDown = false;
    currentTarget.classList.remove("scrubbing");
  };
  return {
    onPointerDown(event) {
      if (event.button !== 0) return;
      Object.assign(pressed, { fromX: event.clientX, isDown: true, isDrag: onClick === undefined });
      event.currentTarget.setPointerCapture(event.pointerId);
      if (pressed.isDrag) onDrag(fractionAt(event));
    },
    onPointerMove(event) {
      if (!pressed.isDown) return;
      pressed.isDrag ||= Math.abs(event.clientX - pressed.fromX) > 4;
      event.currentTarget.classList.toggle("scrubbing", pressed.isDrag);
      if (pressed.isDrag) onDrag(fractionAt(event));
    },
    onPointerUp(event) {
      if (pressed.isDown && !pressed.isDrag) onClick?.(fractionAt(event));
      end(event);
    },
    onPointerCancel: end,
  };
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
 * The keys that move a slider.
 * @param others what other keys do, by their names.
 */
export function onKeys(
  sliderOf: (event: KeyboardEvent) => Slider,
  others: Readonly<Record<string, () => void>> = {},
): (event: KeyboardEvent) => void {
  return (event) => {
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
  };
}
