export { bundlePage } from "./bundle.js";
export { type Page, pages } from "./pages.js";
