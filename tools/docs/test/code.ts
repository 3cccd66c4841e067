import { parseAst } from "vitest/node";
import type { CodeBlock, MarkdownFile } from "../src/markdown.js";

// A block of code becomes a module, so that it is checked as it stands. What it takes from blocks above it on the page, it imports from
// their modules. These imports come after the code, so that a line of the module is a line of the block. A block that begins with the
// name of a file (`// app.ts`) can be imported under that name. It imports by itself all that it takes, because readers copy it as it stands.

export interface Module {
  /** The name of the module's file, without a folder. */
  readonly name: string;
  readonly code: string;
  readonly block: CodeBlock;
}

export interface Modules {
  readonly modules: readonly Module[];
  /** Blocks that are no code: one line each, with the place. */
  readonly faults: readonly string[];
}

/** A node of a syntax tree, as far as it is read here. */
interface Node {
  readonly type: string;
  // biome-ignore lint/suspicious/noExplicitAny: each type of node has other properties
  readonly [property: string]: any;
}

const languages: Readonly<Record<string, "ts" | "js">> = { ts: "ts", typescript: "ts", js: "js", javascript: "js", mjs: "js", cjs: "js" };

/** Whether a block is TypeScript or JavaScript. */
export function isCode({ language }: CodeBlock): boolean {
  return languages[language] !== undefined;
}

/** The modules of a page's blocks of TypeScript and JavaScript. */
export function modulesOf(document: MarkdownFile): Modules {
  const modules: Module[] = [];
  const faults: string[] = [];
  /** The module that declared a name last. */
  const declaredIn = new Map<string, string>();
  /** The modules of blocks whose first line is a comment with the name of a file, by what imports them. */
  const files = new Map<string, string>();
  const page = document.file.replace(/\.md$/, "").replaceAll("/", "_");
  for (const block of document.blocks.filter(isCode)) {
    const isCommonJs = /\brequire\(/.test(block.code) && !/^import /m.test(block.code);
    const name = `${page}_${block.line}.${isCommonJs ? "c" : "m"}${languages[block.language] === "js" ? "js" : "ts"}`;
    try {
      const { declared, exported, named } = namesOf(block.code);
      const [, file] = /^\/\/ ([\w.-]+\.[mc]?[jt]s)\n/.exec(block.code) ?? [];
      const taken = isCommonJs || file !== undefined ? [] : [...named].filter((one) => !declared.has(one) && declaredIn.has(one));
      const imports = taken.map((one) => `import { ${one} } from "./${specifierOf(declaredIn.get(one) ?? "")}";`);
      const shared = isCommonJs ? [] : [...declared].filter((one) => !exported.has(one));
      const code = `${withFiles(block.code, files)}\n${imports.join(" ")} export { ${shared.join(", ")} };\n`;
      modules.push({ name, code: isCommonJs ? block.code : code, block });
      if (!isCommonJs) for (const one of declared) declaredIn.set(one, name);
      if (file !== undefined) files.set(specifierOf(file), specifierOf(name));
    } catch (error) {
      faults.push(`${document.file}:${block.line}: ${error instanceof Error ? error.message.split("\n")[0] : error}`);
    }
  }
  return { modules, faults };
}

/** What imports a file of TypeScript or JavaScript. */
function specifierOf(file: string): string {
  return file.replace(/ts$/, "js");
}

/** Makes imports of files that the page shows imports of their modules. */
function withFiles(code: string, files: ReadonlyMap<string, string>): string {
  return code.trimEnd().replace(/(?<=\bfrom "\.\/)[^"]+(?=")/g, (file) => files.get(file) ?? file);
}

interface Names {
  /** What the top level declares. */
  readonly declared: ReadonlySet<string>;
  /** The part of it that is exported. */
  readonly exported: ReadonlySet<string>;
  /** Every identifier. */
  readonly named: ReadonlySet<string>;
}

function namesOf(code: string): Names {
  const body = parseAst(code, { lang: "ts" }, "block.ts").body as Node[];
  const exported = body.filter(({ type }) => type === "ExportNamedDeclaration").flatMap(({ declaration }) => declaredBy(declaration));
  return {
    declared: new Set([...body.flatMap(declaredBy), ...exported]),
    exported: new Set(exported),
    named: new Set(identifiers(body)),
  };
}

/** The names that a statement declares. */
function declaredBy(statement: Node | null): string[] {
  switch (statement?.type) {
    case "ImportDeclaration":
      return statement["specifiers"].map(({ local }: Node) => local.name);
    case "VariableDeclaration":
      return statement["declarations"].flatMap(({ id }: Node) => bindings(id));
    case "FunctionDeclaration":
    case "ClassDeclaration":
    case "TSInterfaceDeclaration":
    case "TSTypeAliasDeclaration":
      return [statement["id"].name];
    default:
      return [];
  }
}

function bindings(pattern: Node | null): string[] {
  switch (pattern?.type) {
    case "Identifier":
      return [pattern["name"]];
    case "ObjectPattern":
      return pattern["properties"].flatMap(({ value, argument }: Node) => bindings(value ?? argument));
    case "ArrayPattern":
      return pattern["elements"].flatMap(bindings);
    case "AssignmentPattern":
      return bindings(pattern["left"]);
    case "RestElement":
      return bindings(pattern["argument"]);
    default:
      return [];
  }
}

function identifiers(node: unknown): string[] {
  if (Array.isArray(node)) return node.flatMap(identifiers);
  if (typeof node !== "object" || node === null) return [];
  const { type, name, ...rest } = node as Node;
  const inside = Object.values(rest).flatMap(identifiers);
  return type === "Identifier" ? [name, ...inside] : inside;
}
