import { join } from "node:path";

export { bundlePage } from "./bundle.js";

export interface Page {
  /** The folder with `page.html`, `page.css` and `main.ts`. */
  readonly source: string;
  readonly file: string;
}

const root = join(__dirname, "../../..");
const simulator = join(root, "packages/simulator");
const dashboard = join(root, "packages/dashboard");

export const pages: {
  /** Written by each build, and published with the package. */
  readonly built: readonly Page[];
  /** In the repository. `npm run pages` writes them. */
  readonly committed: readonly Page[];
} = {
  built: [
    { source: join(simulator, "src/page/report"), file: join(simulator, "dist/report.html") },
    { source: join(dashboard, "src/page"), file: join(dashboard, "dist/page.html") },
  ],
  committed: [{ source: join(root, "tools/site/algorithms"), file: join(root, "docs/algorithms.html") }],
};
