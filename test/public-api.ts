import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseAst } from "vitest/node";

// The public API of a package as a text, read from the declarations that the compiler writes to `dist`.

/** A node of a syntax tree, as far as it is read here. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  // biome-ignore lint/suspicious/noExplicitAny: each type of node has other properties
  readonly [property: string]: any;
}

/** One exported or local declaration of a module. Overloads of a function are one declaration. */
interface Declaration {
  readonly module: Module;
  readonly name: string;
  readonly nodes: Node[];
}

/** A name that is described elsewhere: that of another package, or of an entry point before; `*` is all of them. */
interface Foreign {
  readonly name: string;
  readonly from: string;
}

/** A `.d.ts` file. */
interface Module {
  readonly file: string;
  readonly code: string;
  /** The declarations by name. */
  readonly declared: Map<string, Declaration>;
  /** Where an imported or re-exported name comes from. */
  readonly imported: Map<string, { readonly name: string; readonly from: string }>;
  readonly exported: string[];
  /** Modules and packages whose names are all exported. */
  readonly exportedWhole: string[];
  /** `declare global` and `declare module`. */
  readonly augmentations: Node[];
}

/**
 * Describes everything that a package exports, an entry point a section, and then the types that are not exported but stand in the
 * types of those that are. Comments and private members are left out.
 * @param folder the folder of the package.
 */
export function publicApi(folder: string): string {
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const modules = new Map<string, Module>();
  const load = (file: string): Module => {
    const known = modules.get(file);
    if (known !== undefined) return known;
    const module = readModule(file);
    modules.set(file, module);
    return module;
  };

  const loadFrom = (module: Module, path: string): Module => load(join(dirname(module.file), path.replace(/\.js$/, ".d.ts")));

  /** The declaration of a name in a module, or undefined if it is another package's or TypeScript's own. */
  const find = (module: Module, name: string): Declaration | undefined => {
    const declaration = module.declared.get(name);
    if (declaration !== undefined) return declaration;
    const origin = module.imported.get(name);
    return origin?.from.startsWith(".") ? find(loadFrom(module, origin.from), origin.name) : undefined;
  };

  /** Everything that a module exports: declarations of its package, and names of other packages. */
  const exportsOf = (module: Module): (Declaration | Foreign)[] => [
    ...module.exported.map((name) => find(module, name) ?? { name, from: module.imported.get(name)?.from ?? "" }),
    ...module.exportedWhole.flatMap((from) => (from.startsWith(".") ? exportsOf(loadFrom(module, from)) : [{ name: "*", from }])),
  ];

  const sections: string[] = [];
  const described = new Map<Declaration, string>();
  for (const [path, conditions] of Object.entries<{ require?: { types?: string } }>(manifest.exports)) {
    const types = conditions.require?.types;
    if (types === undefined) continue;
    const entry = `${manifest.name}${path.slice(1)}`;
    const own: Declaration[] = [];
    const others: Foreign[] = [];
    for (const exported of exportsOf(load(join(folder, types)))) {
      const from = "from" in exported ? exported.from : described.get(exported);
      if (from !== undefined) others.push({ name: exported.name, from });
      else own.push(exported as Declaration);
    }
    for (const declaration of own) described.set(declaration, entry);
    sections.push(section(entry, [...reexports(others), ...own.sort(byName).map(describe)]));
  }

  const hidden: Declaration[] = [];
  // A Map's iterator reaches what is added meanwhile.
  for (const [declaration] of described) {
    for (const name of declaration.nodes.flatMap(typeNames)) {
      const found = find(declaration.module, name);
      if (found === undefined || described.has(found)) continue;
      described.set(found, "");
      hidden.push(found);
    }
  }
  if (hidden.length > 0) sections.push(section("Not exported, but part of the types above", hidden.sort(byName).map(describe)));

  const augmentations = [...modules.values()].flatMap(({ code, augmentations }) => augmentations.map((node) => textOf(code, node)));
  if (augmentations.length > 0) sections.push(section("Added to the types of others", augmentations.sort()));
  return sections.join("\n");
}

function section(title: string, parts: readonly string[]): string {
  return `## ${title}\n\n${parts.map((part) => `${part}\n`).join("\n")}`;
}

function reexports(names: readonly Foreign[]): string[] {
  const sources = [...new Set(names.map(({ from }) => from))].sort();
  return sources.map((source) => {
    const list = names.filter(({ from }) => from === source).map(({ name }) => name);
    return list.includes("*") ? `export * from "${source}";` : `export { ${list.sort().join(", ")} } from "${source}";`;
  });
}

function byName(a: Declaration, b: Declaration): number {
  return a.name < b.name ? -1 : 1;
}

function describe({ module, nodes }: Declaration): string {
  return nodes.map((node) => textOf(module.code, node)).join("\n");
}

function readModule(file: string): Module {
  const code = readFileSync(file, "utf8");
  const module: Module = {
    file,
    code,
    declared: new Map(),
    imported: new Map(),
    exported: [],
    exportedWhole: [],
    augmentations: [],
  };
  for (const node of parseAst(code, { lang: "dts" }, file).body as Node[]) readStatement(module, node);
  return module;
}

function readStatement(module: Module, node: Node): void {
  switch (node.type) {
    case "ImportDeclaration":
      for (const { local, imported } of node["specifiers"]) {
        module.imported.set(local.name, { name: imported?.name ?? "default", from: node["source"].value });
      }
      break;
    case "ExportAllDeclaration":
      module.exportedWhole.push(node["source"].value);
      break;
    case "ExportNamedDeclaration":
      for (const { local, exported } of node["specifiers"]) {
        if (node["source"] !== null) module.imported.set(exported.name, { name: local.name, from: node["source"].value });
        module.exported.push(exported.name);
      }
      if (node["declaration"] !== null) for (const name of declare(module, node["declaration"])) module.exported.push(name);
      break;
    case "TSModuleDeclaration":
      module.augmentations.push(node);
      break;
    default:
      declare(module, node);
  }
}

/** Notes what a statement declares; answers the names that it is the first to declare. */
function declare(module: Module, node: Node): string[] {
  const ids: Node[] = node.type === "VariableDeclaration" ? node["declarations"].map(({ id }: Node) => id) : [node["id"]];
  return ids
    .filter((id) => id != null)
    .flatMap(({ name }) => {
      const known = module.declared.get(name);
      known?.nodes.push(node);
      if (known === undefined) module.declared.set(name, { module, name, nodes: [node] });
      return known === undefined ? [name] : [];
    });
}

/** The names of the types that stand in a declaration; those of private members are left out. */
function typeNames(node: Node): string[] {
  if (isPrivate(node)) return [];
  const { typeName, exprName, superClass } = node;
  const inherited = node.type === "TSInterfaceHeritage" || node.type === "TSClassImplements" ? node["expression"] : superClass;
  const named = [typeName, exprName, inherited].filter((name) => name?.type === "Identifier").map(({ name }) => name);
  return [...named, ...children(node).flatMap(typeNames)];
}

function children(node: Node): Node[] {
  return Object.values(node)
    .flat()
    .filter((child) => typeof child?.type === "string");
}

function isPrivate({ accessibility, key }: Node): boolean {
  return accessibility === "private" || key?.type === "PrivateIdentifier";
}

/** The text of a node without comments, private members and the words that say no more than that it is a declaration. */
function textOf(code: string, node: Node): string {
  let text = "";
  let from = node.start;
  for (const { start, end } of privateMembers(node)) {
    text += code.slice(from, start);
    from = end;
  }
  text += code.slice(from, node.end);
  return text
    .replace(/^declare (?!global|module)/, "")
    .replace(/\/\*.*?\*\//gs, "")
    .replace(/^ *\n/gm, "")
    .replace(/\s+$/gm, "")
    .replace(/^type .{140,}$/gm, (line) => line.replace(/ (?=\| )/g, "\n    "));
}

function privateMembers(node: Node): Node[] {
  return children(node).flatMap((child) => (isPrivate(child) ? [child] : privateMembers(child)));
}
