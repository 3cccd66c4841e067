import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { type MarkdownFile, repository } from "@floodgate/docs";
import { home } from "./home.js";
import { namedDocument, type Target, targetOf } from "./links.js";
import { withLinks } from "./markdown.js";
import { pageOf, pageOfFile, siteDocuments } from "./pages.js";

// The site is built from copies: VitePress wants all pages in one folder, and the repository keeps its documents where they belong.
// The links of a copy lead through the site. The same copies are published beside their HTML.

/** The folder of the pages, next to that of the API reference. */
export const content: string = join(repository, "tools/site/dist/content");

/** Copies every document, and what they link to. */
export function writeContent(): void {
  for (const document of siteDocuments()) {
    const { file, links } = document;
    write(pageOf(file) ?? file, file === "docs/index.md" ? home(onSite) : onSite(document));
    for (const { href } of links) {
      const target = targetOf(file, href);
      if (target !== undefined) copyLinked(target);
    }
  }
}

/** The text of a document with links that lead through the site. */
function onSite(document: MarkdownFile): string {
  const { file } = document;
  const folder = posix.dirname(`/${pageOf(file)}`);
  const hrefTo = (target: Target) => posix.relative(folder, target.href);
  return withLinks(document, {
    link(href) {
      const target = targetOf(file, href);
      return target === undefined ? href : hrefTo(target);
    },
    code(code) {
      const target = namedDocument(file, code);
      return target && `[\`${code}\`](${hrefTo(target)})`;
    },
  });
}

function copyLinked({ kind, file, href }: Target): void {
  if (kind === "shown") write(pageOfFile(file), shown(file));
  if (kind !== "served") return;
  const copy = join(content, "public", href.replace(/#.*/, ""));
  mkdirSync(dirname(copy), { recursive: true });
  cpSync(join(repository, file), copy);
}

/** A page with a file of the repository, or with the names in a folder. */
function shown(file: string): string {
  const path = join(repository, file);
  const isFolder = statSync(path).isDirectory();
  const text = isFolder ? readdirSync(path).sort().join("\n") : readFileSync(path, "utf8");
  const language = isFolder ? "text" : (/\.(\w+)$/.exec(file)?.[1] ?? "text");
  // A fence that is longer than any in the file.
  const fence = "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length + 1)));
  return `---\nsearch: false\noutline: false\n---\n\n# ${file}\n\n${fence}${language}\n${text.trimEnd()}\n${fence}\n`;
}

function write(page: string, text: string): void {
  const path = join(content, page);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
