import { h, render } from "preact";
import type { ReportData } from "./model.js";
import { Report } from "./report.js";

// The page of `floodgate simulate --html`. The command has put its data in the page as JSON.

const data = JSON.parse(document.querySelector("#data")?.textContent ?? "") as ReportData;
render(h(Report, { data }), document.querySelector("main") as HTMLElement);
