import { svg } from "@floodgate/pages/dom";

const top = { y: 10, left: 8, right: 112 };
const bottom = { y: 122, left: 22, right: 98 };

/** A bucket, filled to its level. It is marked for each unit if there are few. */
export function drawBucket(level: number, capacity: number): SVGElement {
  const full = Math.min(1, Math.max(0, capacity === 0 ? 0 : level / capacity));
  const surface = heightAt(full);
  const marks = capacity <= 12 ? capacity - 1 : 3;
  return svg(
    "svg",
    { viewBox: "0 0 120 130", class: "drawing bucket", "aria-hidden": "true" },
    full === 0
      ? undefined
      : svg("path", {
          class: "held",
          d: `M${edge("left", full)} ${surface}H${edge("right", full)}L${bottom.right} ${bottom.y}H${bottom.left}Z`,
        }),
    ...Array.from({ length: marks }, (_, i) => {
      const at = (i + 1) / (marks + 1);
      return svg("path", { class: "mark", d: `M${edge("right", at)} ${heightAt(at)}h-9` });
    }),
    svg("path", { class: "wall", d: `M${top.left} ${top.y}L${bottom.left} ${bottom.y}H${bottom.right}L${top.right} ${top.y}` }),
  );
}

const heightAt = (share: number): number => bottom.y - share * (bottom.y - top.y);

const edge = (side: "left" | "right", share: number): number => bottom[side] + share * (top[side] - bottom[side]);
