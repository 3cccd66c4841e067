import { h } from "@floodgate/pages/dom";

/** What the marks of a lane mean. */
export function makeLegend(): HTMLElement {
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
    { class: "key-to-marks" },
    h("ul", {}, ...Object.entries(marks).map(([mark, text]) => h("li", {}, h("span", { class: `mark ${mark}` }), text))),
    h("p", {}, "Click on a lane to send a request at that moment. Drag to move the clock."),
  );
}
