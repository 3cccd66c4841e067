import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { packages } from "./packages.js";

/** Puts the documents into the tarball of core, which every package installs: the READMEs name them, and npm shows no other files. */
export function copyDocs(): void {
  const source = join(packages, "../docs");
  const target = join(packages, "core/docs");
  rmSync(target, { recursive: true, force: true });
  const files = readdirSync(source, { recursive: true, encoding: "utf8" });
  const published = new Set(files.filter((file) => file.endsWith(".md")).map((file) => file.split(sep).join("/")));
  cpSync(source, target, { recursive: true, filter: (file) => !/\.(?!md$)\w+$/.test(file) });
  for (const file of published) {
    const copy = join(target, file);
    writeFileSync(copy, withoutDeadLinks(readFileSync(copy, "utf8"), file, published));
  }
}

/** A link to a file that is not published becomes its text. */
function withoutDeadLinks(markdown: string, file: string, published: ReadonlySet<string>): string {
  const isDead = (href: string): boolean => {
    const to = relative(".", join(dirname(file), href.replace(/#.*/, "")));
    return !/^(?:\w+:|#)/.test(href) && !published.has(to.split(sep).join("/"));
  };
  const definitions = new Map([...markdown.matchAll(/^\[(\w+)\]: (\S+)$/gm)].map(([, name = "", href = ""]) => [name, href]));
  return markdown
    .replace(/\[([^\]]+)\]\(([^)]+)\)/g, (link, text: string, href: string) => (isDead(href) ? text : link))
    .replace(/\[([^\]]+)\]\[(\w+)\]/g, (link, text: string, name: string) => (isDead(definitions.get(name) ?? "#") ? text : link))
    .replace(/^\[\w+\]: (\S+)\n/gm, (line, href: string) => (isDead(href) ? "" : line));
}
