import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { packages } from "./packages.js";

/** Puts the documents into the tarball of core, which every package installs: the READMEs name them, and npm shows no other files. */
export function copyDocs(): void {
  const source = join(packages, "../docs");
  const target = join(packages, "core/docs");
  rmSync(target, { recursive: true, force: true });
  const files = readdirSync(source, { recursive: true, encoding: "utf8" });
  const published = new Set(files.filter((file) => /\.(?:md|html)$/.test(file)).map((file) => file.split(sep).join("/")));
  cpSync(source, target, { recursive: true, filter: (file) => !/\.(?!(?:md|html)$)\w+$/.test(file) });
  for (const file of published) {
    if (!file.endsWith(".md")) continue;
    const copy = join(target, file);
    writeFileSync(copy, withoutDeadLinks(readFileSync(copy, "utf8"), file, published));
  }
}

/** A link to a file that is not published becomes its text. */
function withoutDeadLinks(markdown: string, file: string, published: ReadonlySet<string>): string {
  return markdown.replace(/\[([^\]]+)\]\((?!\w+:|#)([^)#]+)(#[^)]*)?\)/g, (link, text: string, path: string) => {
    const to = relative(".", join(dirname(file), path))
      .split(sep)
      .join("/");
    return published.has(to) ? link : text;
  });
}
