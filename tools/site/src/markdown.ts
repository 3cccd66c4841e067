import type { MarkdownFile } from "@floodgate/docs";

/** What replaces the target of a link, and inline code that is not a link. */
export interface Replacements {
  readonly link: (href: string) => string;
  readonly code?: (code: string) => string | undefined;
}

/** The text of a Markdown file with other links. Blocks of code stay as they are. */
export function withLinks({ text, blocks }: MarkdownFile, { link, code }: Replacements): string {
  const inBlocks = new Set(blocks.flatMap((block) => block.code.split("\n").map((_, i) => block.line + i)));
  const lines = text.split("\n").map((line, i) => {
    if (inBlocks.has(i + 1)) return line;
    return line
      .replace(/(?<!\[)`([^`]+)`(?!\])/g, (whole, name: string) => code?.(name) ?? whole)
      .replace(/(?<=\]\()[^()\s]+(?=\))|(?<=^\[[^\]]+\]: )\S+/g, link);
  });
  return lines.join("\n");
}

/** Whether a link leads to a file of the repository or the site. */
export function isRelative(href: string): boolean {
  return !/^(?:[a-z][a-z+.-]*:|#|\/)/i.test(href);
}
