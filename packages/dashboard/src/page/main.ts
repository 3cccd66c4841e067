import { h, render } from "preact";
import { Model } from "./model.js";
import { Page } from "./page.js";

const place = document.querySelector("#page") as HTMLElement;
const model: Model = new Model(() => render(h(Page, { model }), place));
model.start();
