import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repository } from "@floodgate/docs";
import type { Comment, CommentDisplayPart } from "typedoc";
import { Application, Converter, ReflectionKind } from "typedoc";
import type { PluginOptions } from "typedoc-plugin-markdown";

export interface EntryPoint {
  /** What one imports, such as `@floodgate/core/store`. */
  readonly name: string;
  readonly source: string;
  /** The name of its page in the folder of the reference, such as `core-store`. */
  readonly page: string;
}

/** The entry points of all packages. */
export function entryPoints(): EntryPoint[] {
  const packages = join(repository, "packages");
  return readdirSync(packages).flatMap((folder) => {
    const { name, exports } = JSON.parse(readFileSync(join(packages, folder, "package.json"), "utf8"));
    return Object.entries<{ "@floodgate/source"?: string }>(exports).flatMap(([path, { "@floodgate/source": source }]) => {
      const entry = `${name}${path.slice(1)}`;
      const page = entry.replace("@floodgate/", "").replaceAll("/", "-");
      return source === undefined ? [] : [{ name: entry, source: join(packages, folder, source), page }];
    });
  });
}

/** Writes a page for each entry point, made of its docstrings, to a folder. */
export async function writeApi(folder: string): Promise<void> {
  const entries = entryPoints();
  const markdown: Partial<PluginOptions> = {
    entryFileName: "index",
    hidePageHeader: true,
    hideBreadcrumbs: true,
    useCodeBlocks: true,
    sanitizeComments: true,
    parametersFormat: "table",
    interfacePropertiesFormat: "table",
    classPropertiesFormat: "table",
    propertyMembersFormat: "table",
    typeDeclarationFormat: "table",
    typeAliasPropertiesFormat: "table",
  };
  const app = await Application.bootstrapWithPlugins({
    entryPoints: entries.map(({ source }) => source),
    tsconfig: join(repository, "tools/site/tsconfig.api.json"),
    out: folder,
    plugin: ["typedoc-plugin-markdown"],
    logLevel: "Error",
    // The packages are checked by their own compiler.
    skipErrorChecking: true,
    excludeExternals: true,
    excludeInternal: true,
    excludePrivate: true,
    disableSources: true,
    readme: "none",
    name: "API reference",
    groupOrder: ["Functions", "Variables", "Interfaces", "Type Aliases", "Classes", "*"],
    sort: ["source-order"],
    router: "module",
    ...markdown,
  });
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.getReflectionsByKind(ReflectionKind.Module)) {
      const file = project.getSymbolIdFromReflection(module)?.fileName;
      const entry = entries.find(({ source }) => source === file);
      if (entry !== undefined) module.name = entry.page;
    }
    for (const { comment } of Object.values(project.reflections)) if (comment !== undefined) fenceExamples(comment);
  });
  const project = await app.convert();
  if (project === undefined) throw new Error("typedoc could not read the packages");
  await app.generateOutputs(project);
  for (const { name, page } of entries) {
    const file = join(folder, `${page}.md`);
    // Links to inherited methods with several signatures lead nowhere.
    const text = readFileSync(file, "utf8").replace(/^# .*/, `# ${name}\n\nWhat \`${name}\` exports, from the comments in its sources.`);
    writeFileSync(file, text.replace(/^#+ Inherited from\n\n.*\n+/gm, ""));
  }
  mendAnchors(folder, entries);
  writeFileSync(join(folder, "index.md"), index(entries));
}

/**
 * typedoc also counts headings of a name that it does not print, so the number of an anchor may be too high. Such a link leads to the last
 * heading of that name.
 */
function mendAnchors(folder: string, entries: readonly EntryPoint[]): void {
  const texts = new Map(entries.map(({ page }) => [`${page}.md`, readFileSync(join(folder, `${page}.md`), "utf8")]));
  const mostOf = (page: string, name: string): number => {
    const headings = [...(texts.get(page) ?? "").matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
      heading.toLowerCase().replace(/\W/g, ""),
    );
    return headings.filter((heading) => heading === name).length - 1;
  };
  for (const [page, text] of texts) {
    const mended = text.replace(/\(([\w-]+\.md)?#([a-z]+)-(\d+)\)/g, (link, other: string | undefined, name: string, number: string) => {
      const most = mostOf(other ?? page, name);
      return most < 1 || Number(number) <= most ? link : `(${other ?? ""}#${name}-${most})`;
    });
    writeFileSync(join(folder, page), mended);
  }
}

function index(entries: readonly EntryPoint[]): string {
  const lines = entries.map(({ name, page }) => `- [${name}](./${page}.md)`);
  return `# API reference\n\nEverything that the packages export, from the comments in their sources.\n\n${lines.join("\n")}\n`;
}

/** Makes the examples of a docstring, which are indented there, code with a language. */
function fenceExamples(comment: Comment): void {
  comment.summary = comment.summary.flatMap(fenced);
  for (const tag of comment.blockTags) tag.content = tag.content.flatMap(fenced);
}

function fenced(part: CommentDisplayPart): CommentDisplayPart[] {
  if (part.kind !== "text") return [part];
  const pieces = part.text.split(/(?<=^|\n\n)((?: {4}.*(?:\n|$)|\n(?= {4}))+)/);
  // Every second piece is what the parentheses matched.
  return pieces.map((text, i) =>
    i % 2 === 0 ? { kind: "text", text } : { kind: "code", text: `\`\`\`ts\n${text.replace(/^ {4}/gm, "").trimEnd()}\n\`\`\`\n\n` },
  );
}
