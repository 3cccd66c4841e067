import type { Overview } from "../contract.js";

const answer = await fetch(new URL("../data/overview", import.meta.url));
const { title }: Overview = await answer.json();
document.title = title;
