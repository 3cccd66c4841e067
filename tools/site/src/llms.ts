import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";
import { documentOf, type MarkdownFile, parseMarkdown } from "@floodgate/docs";
import { content } from "./content.js";
import { targetOf } from "./links.js";
import { isRelative, withLinks } from "./markdown.js";
import { siteDocuments } from "./pages.js";
import { contentsOf } from "./sidebar.js";

// The site for programs that read text, such as coding agents: https://llmstxt.org.

/** Writes each page as Markdown beside its HTML, `llms.txt` with a link to each, and `llms-full.txt` with the text of all. */
export function writeMarkdown(site: string): void {
  cpSync(content, site, { recursive: true, filter: (path) => path !== join(content, "public") });
  const overview = documentOf("README.md");
  const tasks = tasksOf(documentOf("docs/index.md"));
  const lines = [
    `# ${overview.headings[0]?.text}\n\n> ${overview.summary}\n`,
    "Before you write code that uses Floodgate, read [AGENTS.md](AGENTS.md). All pages in one text: [llms-full.txt](llms-full.txt).",
  ];
  const texts: string[] = [];
  for (const { text: title, items } of contentsOf(siteDocuments())) {
    lines.push(`\n## ${title}\n`);
    for (const { text, link, target } of items) {
      if (target !== undefined) continue;
      const name = link.slice(1);
      const page = parseMarkdown(name, readFileSync(join(content, name), "utf8"));
      lines.push(`- [${text}](${name}): ${tasks.get(link) ?? page.summary}`);
      texts.push(`---\nurl: ${name}\n---\n\n${fromRoot(page).trim()}\n`);
    }
  }
  writeFileSync(join(site, "llms.txt"), `${lines.join("\n")}\n`);
  writeFileSync(join(site, "llms-full.txt"), texts.join("\n"));
}

/** What one does with a page, by its address, from the tables of `docs/index.md`: "I want to …, read …". */
function tasksOf({ rows, links }: MarkdownFile): Map<string, string> {
  const tasks = new Map<string, string>();
  for (const { cells, line } of rows) {
    for (const { href } of links.filter((link) => link.line === line)) {
      const page = targetOf("docs/index.md", href)?.href.replace(/#.*/, "") ?? "";
      tasks.set(page, [...(tasks.has(page) ? [tasks.get(page)] : []), cells[0]].join("; "));
    }
  }
  return tasks;
}

/** The text of a page with links from the root of the site. */
function fromRoot(page: MarkdownFile): string {
  return withLinks(page, { link: (href) => (isRelative(href) ? posix.join(posix.dirname(page.file), href) : href) });
}
