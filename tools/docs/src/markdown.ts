import GithubSlugger from "github-slugger";
import MarkdownIt from "markdown-it";

// What the checks and the site read in a Markdown file. Lines count from 1.

export interface Heading {
  readonly level: number;
  readonly text: string;
  /** The anchor that GitHub and the site give it. */
  readonly anchor: string;
  readonly line: number;
}

export interface Link {
  readonly href: string;
  readonly text: string;
  readonly line: number;
}

export interface InlineCode {
  readonly code: string;
  readonly line: number;
}

export interface CodeBlock {
  /** The first word after the fence, such as `ts`. */
  readonly language: string;
  readonly code: string;
  /** The line of the first line of code. */
  readonly line: number;
  /** The anchors of the headings above it, innermost last. */
  readonly under: readonly string[];
}

export interface TableRow {
  /** The cells as they are written, with their Markdown. */
  readonly cells: readonly string[];
  /** The cells of the table's first row. */
  readonly head: readonly string[];
  readonly line: number;
  /** The anchors of the headings above it, innermost last. */
  readonly under: readonly string[];
}

export interface MarkdownFile {
  /** The path from the repository's root, with slashes. */
  readonly file: string;
  readonly text: string;
  /** The first sentence of its first paragraph, without Markdown; empty if it has none. */
  readonly summary: string;
  readonly headings: readonly Heading[];
  readonly links: readonly Link[];
  readonly codes: readonly InlineCode[];
  readonly blocks: readonly CodeBlock[];
  readonly rows: readonly TableRow[];
}

type Token = ReturnType<MarkdownIt["parse"]>[number];

const markdown = new MarkdownIt({ html: true, linkify: false });

/** Reads a Markdown file as GitHub does: CommonMark, tables, and GitHub's anchors. */
export function parseMarkdown(file: string, text: string): MarkdownFile {
  const slugger = new GithubSlugger();
  const headings: Heading[] = [];
  const links: Link[] = [];
  const codes: InlineCode[] = [];
  const blocks: CodeBlock[] = [];
  const rows: TableRow[] = [];
  let open: Heading[] = [];
  let head: string[] = [];
  let cells: string[] | undefined;
  let line = 1;
  let summary = "";

  // Front matter becomes blank lines, so that all lines keep their numbers.
  const body = text.replace(/^---\n.*?\n---\n/s, (matter) => matter.replace(/[^\n]/g, ""));
  const tokens = markdown.parse(body, {});
  for (const [at, token] of tokens.entries()) {
    if (token.map !== null) line = token.map[0] + 1;
    switch (token.type) {
      case "heading_open": {
        const title = plainText(tokens[at + 1]);
        const heading = { level: Number(token.tag.slice(1)), text: title, anchor: slugger.slug(title), line };
        headings.push(heading);
        open = [...open.filter(({ level }) => level < heading.level), heading];
        break;
      }
      case "paragraph_open":
        if (summary === "" && token.level === 0) summary = firstSentence(plainText(tokens[at + 1]));
        break;
      case "fence":
        blocks.push({
          language: token.info.trim().split(/[\s{]/)[0] ?? "",
          code: token.content,
          line: line + 1,
          under: open.map(({ anchor }) => anchor),
        });
        break;
      case "table_open":
        head = [];
        break;
      case "tr_open":
        cells = [];
        break;
      case "tr_close":
        if (head.length === 0) head = cells ?? [];
        else rows.push({ cells: cells ?? [], head, line, under: open.map(({ anchor }) => anchor) });
        cells = undefined;
        break;
      case "inline":
        cells?.push(token.content);
        readInline(token, line, links, codes);
        break;
      default:
    }
  }
  return { file, text, summary, headings, links, codes, blocks, rows };
}

function readInline(token: Token, first: number, links: Link[], codes: InlineCode[]): void {
  let line = first;
  const children = token.children ?? [];
  for (const [at, child] of children.entries()) {
    if (child.type === "softbreak" || child.type === "hardbreak") line++;
    if (child.type === "code_inline") codes.push({ code: child.content, line });
    if (child.type === "image") links.push({ href: child.attrGet("src") ?? "", text: child.content, line });
    if (child.type === "link_open") {
      const end = children.findIndex(({ type }, i) => i > at && type === "link_close");
      links.push({ href: child.attrGet("href") ?? "", text: textOf(children.slice(at + 1, end)), line });
    }
  }
}

function plainText(token: Token | undefined): string {
  return textOf(token?.children ?? []);
}

function textOf(tokens: readonly Token[]): string {
  return tokens
    .filter(({ type }) => type === "text" || type === "code_inline" || type === "softbreak")
    .map(({ type, content }) => (type === "softbreak" ? " " : content))
    .join("");
}

function firstSentence(text: string): string {
  return (text.split(/(?<=[.?!])\s+/)[0] ?? "").replace(/:$/, ".");
}
