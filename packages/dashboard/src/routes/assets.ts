import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { headersFor, pageHeaders } from "../safety/headers.js";
import type { Answer } from "./view.js";

/** The package's folder, from `src/routes` as from `dist/routes`. */
const root = join(__dirname, "..", "..");

interface Assets {
  readonly page: string;
  readonly styles: string;
  /** By their path in `src/page`. */
  readonly modules: ReadonlyMap<string, string>;
}

/** In the order in which they apply. */
const styleSheets = ["tokens", "elements", "layout", "controls", "charts", "sections", "key"];

let loaded: Assets | undefined;

/** Reads all files once. */
function assets(): Assets {
  if (loaded !== undefined) return loaded;
  const uplot = createRequire(join(root, "package.json")).resolve("uplot");
  const folder = join(root, "dist", "page");
  const modules = new Map(
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".js"))
      .map((file) => [file.replaceAll("\\", "/"), withoutMap(readFileSync(join(folder, file), "utf8"))]),
  );
  // In place of the module that only gives the page its types.
  modules.set("uplot.js", readFileSync(join(uplot, "..", "uPlot.esm.js"), "utf8"));
  const styles = [join(uplot, "..", "uPlot.min.css"), ...styleSheets.map((name) => join(root, "static", `${name}.css`))];
  loaded = {
    page: readFileSync(join(root, "static", "page.html"), "utf8"),
    styles: styles.map((file) => readFileSync(file, "utf8")).join("\n"),
    modules,
  };
  return loaded;
}

/** The source maps are not served. */
function withoutMap(code: string): string {
  return code.replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n");
}

const markup: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** The page. Nothing in it comes from the request. */
export function pageAnswer(title: string): Answer {
  const { page, styles } = assets();
  const nonce = randomBytes(16).toString("base64");
  const filled: Readonly<Record<string, string>> = {
    "{{title}}": title.replace(/[&<>"']/g, (character) => markup[character] as string),
    "{{nonce}}": nonce,
    "/* {{styles}} */": styles,
  };
  const body = page.replace(/\{\{title\}\}|\{\{nonce\}\}|\/\* \{\{styles\}\} \*\//g, (place) => filled[place] as string);
  return { status: 200, headers: pageHeaders(nonce), body };
}

/** A browser module; undefined for an unknown name. */
export function moduleAnswer(file: string): Answer | undefined {
  const code = assets().modules.get(file);
  return code === undefined ? undefined : { status: 200, headers: headersFor("text/javascript; charset=utf-8"), body: code };
}
