import { join } from "node:path";
import { repository } from "@floodgate/docs";
import { slug } from "github-slugger";
import { defineConfig, type MarkdownRenderer } from "vitepress";
import { content } from "../dist/content.js";
import { isRelative } from "../dist/markdown.js";
import { siteDocuments } from "../dist/pages.js";
import { sidebar } from "../dist/sidebar.js";

/** A gate over water. */
const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#3b6fd4" d="M1 2h3v9H1zm11 0h3v9h-3zM5 2h6v5H5z"/>
<path fill="none" stroke="#3b6fd4" stroke-width="1.5" d="M1 13.5q1.75-2 3.5 0t3.5 0 3.5 0 3.5 0"/></svg>`;

/** Gives each cell the text of its column's head, which is shown beside it where tables are too wide. */
function labelCells(tokens: ReturnType<MarkdownRenderer["parse"]>): void {
  let heads: string[] = [];
  let column = 0;
  for (const [i, token] of tokens.entries()) {
    if (token.type === "table_open") heads = [];
    if (token.type === "tr_open") column = 0;
    const text = () => tokens[i + 1]?.children?.map(({ content }) => content).join("") ?? "";
    if (token.type === "th_open") heads.push(text());
    if (token.type === "td_open") token.attrSet("data-head", heads[column++] ?? "");
  }
}

export default defineConfig({
  title: "Floodgate",
  description: "Rate limiting for Node web apps that is right, fast and the same everywhere",
  lang: "en",
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `data:image/svg+xml,${encodeURIComponent(icon)}` }]],
  srcDir: content,
  outDir: join(repository, "dist/site"),
  // Addresses of examples, which nobody serves.
  ignoreDeadLinks: "localhostLinks",
  markdown: {
    languageAlias: { mjs: "js", cjs: "js", caddyfile: "nginx", haproxy: "nginx" },
    // The anchors of GitHub, where the same documents are read.
    anchor: { slugify: slug },
    config: (markdown) =>
      markdown.core.ruler.push("files", ({ tokens }) => {
        for (const token of tokens.flatMap(({ children }) => children ?? [])) {
          const href = token.type === "link_open" ? (token.attrGet("href") ?? "") : "#";
          // The router of the site shows pages only.
          if (isRelative(href) && !/\.md(?:#|$)/.test(href)) token.attrSet("target", "_self");
        }
        labelCells(tokens);
      }),
  },
  transformPageData: ({ relativePath }) => (relativePath === "index.md" ? { frontmatter: { layout: "home" } } : {}),
  transformHead: ({ pageData }) => [["link", { rel: "alternate", type: "text/markdown", href: `/${pageData.relativePath}` }]],
  vite: {
    publicDir: join(content, "public"),
    // The index of the search, which is loaded when somebody searches.
    build: { chunkSizeWarningLimit: 4000 },
  },
  themeConfig: {
    search: {
      provider: "local",
      options: {
        // The home has what other pages say at more length.
        _render: (text, env, markdown) => {
          const html = markdown.render(text, env);
          return env.relativePath === "index.md" || env.frontmatter?.search === false ? "" : html;
        },
        // A page about a task comes before one about a package, a gateway or another library.
        miniSearch: {
          searchOptions: { boostDocument: (page: string) => (/^\/[^/]+$/.test(page) ? 1 : page.startsWith("/api/") ? 0.2 : 0.5) },
        },
      },
    },
    outline: { level: [2, 3], label: "On this page" },
    nav: [
      { text: "Getting started", link: "/getting-started" },
      { text: "Contents", link: "/#limit-requests" },
      { text: "Algorithms", link: "/algorithms.html", target: "_self" },
      { text: "API", link: "/api/" },
    ],
    sidebar: sidebar(siteDocuments()),
  },
});
