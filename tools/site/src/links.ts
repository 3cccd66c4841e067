import { existsSync, statSync } from "node:fs";
import { join, posix } from "node:path";
import { repository } from "@floodgate/docs";
import { pageOf, pageOfFile } from "./pages.js";

/** Files that the site serves as they are: a page of their own, and pictures. */
const served = /^docs\/.+\.(?:html|svg|png|webp)$/;

/** In bytes. Longer files are not shown on a page. */
const largest = 60_000;

export interface Target {
  /** The address on the site, from its root; of a page the name of its Markdown file. */
  readonly href: string;
  /** A document; what is served as it is; or what is shown on a page made for it. */
  readonly kind: "page" | "served" | "shown";
  /** The file of the repository. */
  readonly file: string;
}

/** Where a link of a document leads on the site; `undefined` if it is an address of the web, an anchor of the same page, or dead. */
export function targetOf(document: string, href: string): Target | undefined {
  if (/^(?:[a-z][a-z+.-]*:|#|\/\/)/i.test(href)) return undefined;
  const [path = "", anchor] = href.split("#");
  const hash = anchor === undefined ? "" : `#${anchor}`;
  const linked = posix.join(posix.dirname(document), decodeURI(path)).replace(/\/$/, "");
  const onDisk = join(repository, linked);
  const readme = posix.join(linked, "README.md");
  if (!existsSync(onDisk)) return undefined;
  const isFolder = statSync(onDisk).isDirectory();
  const file = isFolder && existsSync(join(repository, readme)) ? readme : linked;
  if (served.test(file)) return { href: `/${file.slice("docs/".length)}${hash}`, kind: "served", file };
  if (statSync(onDisk).size > largest) return { href: `/files/${file}`, kind: "served", file };
  const page = pageOf(file);
  return page === undefined
    ? { href: `/${pageOfFile(file)}${hash}`, kind: "shown", file }
    : { href: `/${page}${hash}`, kind: "page", file };
}

/**
 * The document that inline code of a package's README names, such as `docs/redis.md` or `@floodgate/koa`: on npm it is a name, on the
 * site a link.
 */
export function namedDocument(document: string, code: string): Target | undefined {
  if (!document.startsWith("packages/")) return undefined;
  const [, name] = /^@floodgate\/([\w-]+)$/.exec(code) ?? [];
  const isPath = /^(?:docs|packages|examples)\/[\w./-]+\.(?:md|html)(?:#[\w-]+)?$/.test(code);
  const path = name === undefined ? code : `packages/${name}/README.md`;
  const target = isPath || name !== undefined ? targetOf("README.md", path) : undefined;
  return target?.file === document ? undefined : target;
}
