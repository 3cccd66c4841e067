import { documents, type MarkdownFile } from "@floodgate/docs";

// Where each document of the repository stands on the site. All paths have slashes; those of the repository have no leading one.

/** The page of a document, such as `redis.md`; `undefined` if it is not on the site. */
export function pageOf(file: string): string | undefined {
  if (file === "README.md") return "overview.md";
  if (/^[A-Z_]+\.md$/.test(file)) return `project/${file.toLowerCase().replaceAll("_", "-")}`;
  const [, docs] = /^docs\/(.+\.md)$/.exec(file) ?? [];
  if (docs !== undefined) return docs.replace(/README\.md$/, "index.md");
  const [, folder, name] = /^(packages|examples)\/([^/]+)\/README\.md$/.exec(file) ?? [];
  if (folder !== undefined) return `${folder}/${name}.md`;
  return file === "examples/README.md" ? "examples/index.md" : undefined;
}

/** The page that shows a file that is not a document. */
export function pageOfFile(file: string): string {
  // VitePress leaves out folders whose names begin with a dot.
  return `files/${file.replace(/(?<=^|\/)\./g, "").replace(/\.md$/, "")}.md`;
}

/** The documents of the site. */
export function siteDocuments(): MarkdownFile[] {
  return documents().filter(({ file }) => pageOf(file) !== undefined);
}
