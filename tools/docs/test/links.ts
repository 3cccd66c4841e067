import { existsSync, readFileSync, statSync } from "node:fs";
import { join, posix } from "node:path";
import { documentOf, repository } from "../src/documents.js";
import type { MarkdownFile } from "../src/markdown.js";

/** The documents that npm shows, without the rest of the repository. */
const onNpm = /^packages\/([^/]+)\/README\.md$/;

/** What is wrong with the links of a document: one line each, with the place. */
export function deadLinks({ file, links, codes, headings }: MarkdownFile): string[] {
  const wrong = links.flatMap(({ href, line }) => {
    const fault = faultOf(file, href, headings);
    return fault === undefined ? [] : [`${file}:${line}: ${href} ${fault}`];
  });
  // Documents and other files are named as well as linked.
  const named = codes.flatMap(({ code, line }) => {
    const fault = /^(?:docs|packages|examples|tools|bench)\/[\w./-]+\.\w+(?:#[\w-]+)?$/.test(code)
      ? faultOf("README.md", code, [])
      : undefined;
    return fault === undefined ? [] : [`${file}:${line}: ${code} ${fault}`];
  });
  return [...wrong, ...named];
}

function faultOf(document: string, href: string, headings: MarkdownFile["headings"]): string | undefined {
  if (/^(?:https?|mailto):/.test(href)) return undefined;
  const [path = "", anchor] = href.split("#");
  if (path === "") return headings.some((heading) => heading.anchor === anchor) ? undefined : "is not a heading of this page";
  if (path.startsWith("/")) return "starts at the root of a host";
  const file = posix.join(posix.dirname(document), decodeURI(path));
  if (file.startsWith("..")) return "leads out of the repository";
  const outside = outsideTarball(document, file);
  if (outside !== undefined) return outside;
  const onDisk = join(repository, file);
  if (!existsSync(onDisk)) return "does not exist";
  // The algorithms' page reads its settings from the anchor.
  if (anchor === undefined || !file.endsWith(".md") || statSync(onDisk).isDirectory()) return undefined;
  return documentOf(file).headings.some((heading) => heading.anchor === anchor) ? undefined : `is not a heading of ${file}`;
}

function outsideTarball(document: string, file: string): string | undefined {
  const [, name] = onNpm.exec(document) ?? [];
  if (name === undefined) return undefined;
  const folder = `packages/${name}`;
  const { files = [] } = JSON.parse(readFileSync(join(repository, folder, "package.json"), "utf8"));
  const published: string[] = [...files.map((entry: string) => entry.replace(/^\.?\/|\/$/g, "")), "README.md", "LICENSE", "package.json"];
  const isIn = published.some((entry) => file === `${folder}/${entry}` || file.startsWith(`${folder}/${entry}/`));
  return isIn ? undefined : "is not in the tarball, so npm cannot show it. Name it in inline code, such as `docs/redis.md`";
}
