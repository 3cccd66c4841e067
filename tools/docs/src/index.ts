export { documentOf, documents, repository } from "./documents.js";
export { type CodeBlock, type Heading, type InlineCode, type Link, type MarkdownFile, parseMarkdown, type TableRow } from "./markdown.js";
