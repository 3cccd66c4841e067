import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { build } from "esbuild";

/**
 * Makes one HTML file of a folder's `page.html`, `page.css` and `main.ts`, with all that they import. The file loads nothing else, so it
 * also works from a disk. Packages of this repository are bundled from their sources, so nothing must be built first. The same sources make
 * the same file, byte for byte.
 *
 * `page.html` says where the parts go: `{{policy}}` in a `<meta http-equiv="Content-Security-Policy">`, and the comments `{{styles}}` and
 * `{{script}}`, each alone in a `<style>` and in a classic `<script>` at the end of the body. The policy allows these two by their hashes,
 * and nothing else. A page whose server sends the policy has the places `{{nonce}}` instead, which the server fills in.
 * @throws Error if a source does not compile, or if `page.html` lacks a place.
 */
export async function bundlePage(folder: string): Promise<string> {
  const [script, styles] = await Promise.all([bundle(join(folder, "main.ts")), bundle(join(folder, "page.css"))]);
  const parts: Readonly<Record<string, string>> = {
    "{{policy}}": policyFor(script, styles),
    "/* {{styles}} */": styles,
    "/* {{script}} */": script,
  };
  const file = join(folder, "page.html");
  const html = readFileSync(file, "utf8");
  for (const place of Object.keys(parts)) {
    if (place === "{{policy}}" && html.includes("{{nonce}}")) continue;
    if (html.split(place).length !== 2) throw new Error(`${file} must have ${place} exactly once.`);
  }
  return html.replace(/\{\{policy\}\}|\/\* \{\{(?:styles|script)\}\} \*\//g, (place) => parts[place] as string);
}

/** Of Preact, which has none in its code. */
const licence = `/*! Preact. ${readFileSync(join(dirname(require.resolve("preact/package.json")), "LICENSE"), "utf8")}*/`;

async function bundle(file: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [file],
    bundle: true,
    minify: true,
    write: false,
    charset: "utf8",
    logLevel: "silent",
    // Licences of libraries stay in the file.
    legalComments: "eof",
    banner: { js: licence },
    format: "iife",
    // Browsers of 2024, which have light-dark() and checkVisibility().
    target: ["es2022", "chrome123", "firefox120", "safari17.5"],
    conditions: ["@floodgate/source"],
    // Node's own builtins would fail: a page has none.
    platform: "browser",
    // Options of tsconfig.json that change what code does are the same for all sources; a folder's own file must not matter.
    tsconfigRaw: { compilerOptions: { target: "es2022", jsx: "react-jsx", jsxImportSource: "preact" } },
  });
  const text = (outputFiles[0] as { text: string }).text.trim();
  // It would end the element, or begin a comment, in the midst of the code.
  if (/<\/(?:script|style)|<!--/i.test(text))
    throw new Error(`${file}: the bundle has "</script", "</style" or "<!--". Write it in parts.`);
  return text;
}

function policyFor(script: string, styles: string): string {
  const hash = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  const allowed = { "default-src": "'none'", "script-src": hash(script), "style-src": hash(styles), "img-src": "data:" };
  const refused = { "base-uri": "'none'", "form-action": "'none'" };
  return Object.entries({ ...allowed, ...refused })
    .map(([directive, source]) => `${directive} ${source}`)
    .join("; ");
}
