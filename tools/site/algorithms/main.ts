import { visible } from "@floodgate/pages/format";
import { h, render } from "preact";
import { hashOf, type Settings, settingsOf } from "../../../packages/simulator/src/page/algorithms/model/settings.js";
import { mount } from "../../../packages/simulator/src/page/algorithms/mount.js";

// The page: what is chosen stands in its address, so that a link shares it.

const notice = document.querySelector("#notice") as HTMLElement;
const copied = document.querySelector("#copied") as HTMLElement;

function read(): Settings {
  const { settings, problems } = settingsOf(location.hash);
  notice.hidden = problems.length === 0;
  const list = problems.map((problem) => h("li", {}, visible(problem)));
  render([h("p", {}, "This link is not quite right, so a part of it is as usual:"), h("ul", {}, list)], notice);
  return settings;
}

/** The home of the site shows a few lanes. */
const embedded = location.hash === "#embedded";
if (embedded) {
  document.documentElement.classList.add("embedded");
  history.replaceState(null, "", location.pathname);
}

const board = mount(document.querySelector("#algorithms") as HTMLElement, {
  settings: read(),
  onChange(settings) {
    notice.hidden = true;
    copied.textContent = "";
    history.replaceState(null, "", hashOf(settings));
  },
});

if (embedded) {
  board.play();
  // A frame does not grow with its page, and how high the lanes are depends on the fonts.
  const frame = window.frameElement as HTMLElement | null;
  new ResizeObserver(() => frame?.style.setProperty("height", `${document.documentElement.offsetHeight}px`)).observe(document.body);
}

addEventListener("hashchange", () => board.set(read()));

document.querySelector("#copy")?.addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(location.href);
    copied.textContent = "Copied.";
  } catch {
    copied.textContent = "Copy the address of this page: the browser does not let the page do it.";
  }
});
