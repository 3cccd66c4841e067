import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type MarkdownFile, parseMarkdown } from "./markdown.js";

/** The root of the repository. */
export const repository: string = join(import.meta.dirname, "../../..");

/** Every document that somebody reads: of the root, of docs, and the README of each package, tool and example. */
export function documents(): MarkdownFile[] {
  return [
    ...readdirSync(repository).filter((file) => file.endsWith(".md")),
    ...readdirSync(join(repository, "docs"), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".md"))
      .map((file) => `docs/${file.replaceAll("\\", "/")}`),
    ...["packages", "examples", "tools", "bench"].flatMap((folder) => readmesIn(folder)),
  ].map(documentOf);
}

/** A document by its path from the root. @throws Error if there is none. */
export function documentOf(file: string): MarkdownFile {
  return parseMarkdown(file, readFileSync(join(repository, file), "utf8"));
}

/** The README of a folder, and of each folder in it. */
function readmesIn(folder: string): string[] {
  const folders = [folder, ...readdirSync(join(repository, folder)).map((name) => `${folder}/${name}`)];
  return folders.map((name) => `${name}/README.md`).filter((file) => existsSync(join(repository, file)));
}
