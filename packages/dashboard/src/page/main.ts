import { fill, foreign, h } from "@floodgate/pages/dom";
import { timeZone } from "@floodgate/pages/format";
import { Model } from "./model.js";
import { answer } from "./sections/answer.js";
import { bursts } from "./sections/bursts.js";
import { lookup } from "./sections/lookup.js";
import { request } from "./sections/request.js";
import { rules } from "./sections/rules.js";
import { stores } from "./sections/stores.js";
import { topBar } from "./sections/top-bar.js";
import { byRejections, byRequests, topKeys } from "./sections/top-keys.js";
import { traffic } from "./sections/traffic.js";

const keys = lookup();
const sections = [
  answer(),
  keys,
  request(),
  traffic(),
  rules(),
  bursts(),
  stores(),
  topKeys(byRequests, (key) => keys.open(key)),
  topKeys(byRejections, (key) => keys.open(key)),
];
const trouble = h("p", { class: "notice bad", role: "alert", hidden: true });
const main = h("main", { id: "main", class: "waiting", tabindex: -1 }, trouble, ...sections.map(({ element }) => element));

const model = new Model(() => {
  const { figures } = model;
  bar.update();
  trouble.hidden = model.trouble === undefined;
  if (model.trouble !== undefined) fill(trouble, "The figures could not be read. ", foreign(model.trouble));
  if (figures === undefined) return;
  main.classList.remove("waiting");
  for (const section of sections) {
    try {
      section.update(figures);
    } catch (error) {
      // A section that cannot be drawn must not stop the others.
      reportError(error);
    }
  }
});
const bar = topBar(model);

document.body.append(
  h("a", { class: "skip", href: "#main" }, "Skip to the figures"),
  bar.element,
  main,
  h("footer", {}, h("p", {}, `Times are local: ${timeZone()}.`)),
);
model.start();
