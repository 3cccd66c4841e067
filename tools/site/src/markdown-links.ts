import { posix } from "node:path";
import type { MarkdownRenderer } from "vitepress";
import { namedDocument, type Target, targetOf } from "./links.js";

type State = Parameters<Parameters<MarkdownRenderer["core"]["ruler"]["push"]>[1]>[0];
type Token = State["tokens"][number];

/**
 * Makes the links of documents, which lead through the repository, lead through the site.
 * @param sources the document of each page.
 */
export function repositoryLinks(markdown: MarkdownRenderer, content: string, sources: Readonly<Record<string, string>>): void {
  markdown.core.ruler.push("repository-links", (state) => {
    const document = sources[posix.relative(content, state.env.path ?? "")];
    if (document === undefined) return;
    for (const token of state.tokens) if (token.children !== null) token.children = withLinks(state, document, token.children);
  });
}

function withLinks(state: State, document: string, tokens: readonly Token[]): Token[] {
  let inLink = false;
  return tokens.flatMap((token) => {
    if (token.type === "link_close") inLink = false;
    if (token.type === "link_open") {
      inLink = true;
      rewrite(document, token);
    }
    const named = token.type === "code_inline" && !inLink ? namedDocument(document, token.content) : undefined;
    if (named === undefined) return [token];
    const open = new state.Token("link_open", "a", 1);
    lead(open, named);
    return [open, token, new state.Token("link_close", "a", -1)];
  });
}

function rewrite(document: string, link: Token): void {
  const target = targetOf(document, link.attrGet("href") ?? "");
  if (target !== undefined) lead(link, target);
}

function lead(link: Token, { href, kind }: Target): void {
  link.attrSet("href", href);
  // The router of the site shows pages only.
  if (kind === "served") link.attrSet("target", "_blank");
}
