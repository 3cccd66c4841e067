import { Choice, type ReportData } from "./model.js";
import { about, notesSection } from "./sections/about.js";
import { burstSection } from "./sections/burst.js";
import { clientsSection } from "./sections/clients.js";
import { limitsSection } from "./sections/limits.js";
import { rulesSection } from "./sections/rules.js";
import { summary } from "./sections/summary.js";
import { trafficSection } from "./sections/traffic.js";

// The page of `floodgate simulate --html`. The command has put its data in the page as JSON.

const data = JSON.parse(document.querySelector("#data")?.textContent ?? "") as ReportData;
const choice = new Choice(data);
const hasRequests = data.rules.some(({ requests }) => requests > 0);
const sections = [
  rulesSection(choice),
  hasRequests ? limitsSection(choice) : undefined,
  data.timeline === undefined ? undefined : trafficSection(choice, data.timeline),
  hasRequests ? burstSection(choice) : undefined,
  hasRequests ? clientsSection(choice) : undefined,
  notesSection(data),
];
document.querySelector("main")?.append(summary(data), ...sections.filter((part) => part !== undefined), about(data));
