import { documentOf, type MarkdownFile } from "@floodgate/docs";
import type { DefaultTheme } from "vitepress";
import { entryPoints } from "./api.js";
import { targetOf } from "./links.js";
import { pageOf } from "./pages.js";

interface Item {
  readonly text: string;
  /** The address on the site, from its root; of a page the name of its Markdown file. */
  readonly link: string;
  readonly target?: string;
}

interface Group {
  readonly text: string;
  readonly collapsed?: boolean;
  readonly items: Item[];
}

/** Links of the sidebar name pages, not files. */
export function sidebar(documents: readonly MarkdownFile[]): DefaultTheme.SidebarItem[] {
  const shown = (item: Item) => ({ ...item, link: item.link.replace(/(?:index)?\.md$/, "") });
  return contentsOf(documents).map((group) => ({ ...group, items: group.items.map(shown) }));
}

/**
 * All pages: the table of contents in `docs/index.md`, a group for each of its second-level headings, then the pages that it does not
 * list.
 */
export function contentsOf(documents: readonly MarkdownFile[]): Group[] {
  const { headings, links } = documentOf("docs/index.md");
  const listed = new Set(["docs/index.md", "README.md"]);
  const chapters = headings.filter(({ level }) => level === 2);
  const groups: Group[] = chapters.map(({ text }) => ({ text, collapsed: false, items: [] }));
  for (const { href, text, line } of links) {
    const target = targetOf("docs/index.md", href);
    const group = groups[chapters.filter((chapter) => chapter.line < line).length - 1];
    if (target === undefined || group === undefined || listed.has(target.file) || target.href.includes("#")) continue;
    if (target.kind === "shown") continue;
    listed.add(target.file);
    group.items.push({
      text: text.charAt(0).toUpperCase() + text.slice(1),
      link: target.href,
      ...(target.kind === "served" && { target: "_self" }),
    });
  }
  const others = documents.filter(({ file }) => !listed.has(file));
  const rest = (text: string, folder: RegExp): Group[] => {
    const items = others
      .filter(({ file }) => folder.test(file))
      .map(({ file, headings }) => ({ text: headings[0]?.text ?? file, link: `/${pageOf(file)}` }));
    return items.length === 0 ? [] : [{ text, collapsed: true, items }];
  };
  return [
    {
      text: "Overview",
      items: [
        { text: "Home", link: "/index.md" },
        { text: "Floodgate on one page", link: "/overview.md" },
      ],
    },
    ...groups.filter(({ items }) => items.length > 0),
    ...rest("More", /^docs\/[^/]+\.md$/),
    ...rest("Gateways", /^docs\/gateways\//),
    ...rest("Coming from elsewhere", /^docs\/migrating\//),
    ...rest("Packages", /^packages\//),
    { text: "API reference", collapsed: true, items: apiPages() },
    ...rest("Examples", /^examples\//),
    ...rest("Project", /^[A-Z_]+\.md$/),
  ];
}

function apiPages(): Item[] {
  const pages = entryPoints().map(({ name, page }) => ({ text: name.replace("@floodgate/", ""), link: `/api/${page}.md` }));
  return [{ text: "Entry points", link: "/api/index.md" }, ...pages];
}
