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

const model = new Model();
const keys = lookup(model);
const bar = topBar(model);
const sections = [
  answer(model),
  keys,
  request(),
  traffic(model),
  rules(model),
  bursts(model),
  stores(model),
  topKeys(model, byRequests, (key) => keys.open(key)),
  topKeys(model, byRejections, (key) => keys.open(key)),
];
const trouble = h("p", { class: "notice bad", role: "alert", hidden: true });
const main = h("main", { id: "main", tabindex: -1 }, trouble, ...sections.map(({ element }) => element));

document.body.append(
  h("a", { class: "skip", href: "#main" }, "Skip to the figures"),
  bar.element,
  main,
  h("footer", {}, h("p", {}, `Times are local: ${timeZone()}.`)),
);

model.onChange(() => {
  main.classList.toggle("waiting", model.overview === undefined);
  trouble.hidden = model.trouble === undefined;
  if (model.trouble !== undefined) fill(trouble, "The figures could not be read. ", foreign(model.trouble));
  for (const section of [bar, ...sections]) {
    try {
      section.update();
    } catch (error) {
      // What one section cannot show hides no other.
      reportError(error);
    }
  }
});
model.start();
