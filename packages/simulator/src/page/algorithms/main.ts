import { algorithms } from "@floodgate/core/rules";

const list = document.createElement("ul");
for (const [name, { description }] of Object.entries(algorithms)) {
  const item = document.createElement("li");
  item.textContent = `${name}: ${description}`;
  list.append(item);
}
document.querySelector("main")?.append(list);
