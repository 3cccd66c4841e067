import { parse } from "@babel/parser";
import type { File, Node, Statement } from "@babel/types";
import MagicString from "magic-string";
import { Failure } from "../failure.js";
import { bare, type CallNode, propertyName, references, walk } from "./nodes.js";

/** Something that a person has to do or to know. */
export interface Remark {
  /** From 1. */
  readonly line: number;
  /** From 1. */
  readonly column: number;
  readonly message: string;
}

/** A call that builds a limit. */
export interface Call {
  readonly node: CallNode;
  /** What the package exports: `default`, `rateLimit`, … */
  readonly exported: string;
  readonly parent: Node | undefined;
}

/** A name that a statement takes from the package. */
export interface Binding {
  readonly local: string;
  /** `*` for the whole module. */
  readonly exported: string;
  readonly isType: boolean;
}

/** A statement that imports or requires the package. */
export interface Import {
  readonly node: Statement;
  readonly bindings: readonly Binding[];
  readonly isRequire: boolean;
  readonly module: string;
}

/** A file that is being rewritten. */
export class Source {
  readonly edits: MagicString;
  readonly byHand: Remark[] = [];
  readonly notes: Remark[] = [];
  readonly code: string;
  readonly #file: File;
  readonly #uses = new Map<string, readonly Node[]>();
  readonly #replaced: [from: number, to: number][] = [];

  /** @throws Failure if the file cannot be parsed. */
  constructor(name: string, code: string) {
    this.code = code;
    this.#file = parsed(name, code);
    this.edits = new MagicString(code);
  }

  get program(): Node {
    return this.#file.program;
  }

  handle(node: Node, message: string): void {
    this.byHand.push(this.#remark(node, message));
  }

  note(node: Node, message: string): void {
    this.notes.push(this.#remark(node, message));
  }

  #remark(node: Node, message: string): Remark {
    const { line = 1, column = 0 } = node.loc?.start ?? {};
    return { line, column: column + 1, message };
  }

  text(node: Node): string {
    return this.code.slice(start(node), end(node));
  }

  replace(node: Node, text: string): void {
    this.#replaced.push([start(node), end(node)]);
    this.edits.overwrite(start(node), end(node), text);
  }

  /** Whether a part of the file has been replaced. */
  isRewritten(node: Node): boolean {
    return this.#replaced.some(([from, to]) => from < end(node) && start(node) < to);
  }

  /** The statements that import one of these modules. Dynamic imports and re-exports are left to do by hand. */
  imports(modules: readonly string[]): Import[] {
    const found: Import[] = [];
    const isModule = (node: Node | null | undefined): boolean => node?.type === "StringLiteral" && modules.includes(node.value);
    walk(this.program, (node, parent) => {
      if (node.type === "ImportDeclaration" && isModule(node.source)) {
        found.push({ node, bindings: importBindings(node), isRequire: false, module: node.source.value });
      } else if ((node.type === "ExportNamedDeclaration" || node.type === "ExportAllDeclaration") && isModule(node.source)) {
        this.handle(node, `This passes on exports of ${node.source?.value}. Export what Floodgate has instead.`);
      } else if (node.type === "VariableDeclaration") {
        const [declarator] = node.declarations;
        const required = declarator?.init && requiredModule(declarator.init);
        if (declarator === undefined || required === undefined || required === null || !modules.includes(required.module)) return;
        const bindings = node.declarations.length === 1 ? requireBindings(declarator.id, required.property) : undefined;
        if (bindings === undefined) this.handle(node, `Write const { rateLimit } = require(...) in a statement of its own.`);
        else found.push({ node, bindings, isRequire: true, module: required.module });
      } else if (node.type === "ImportExpression" && isModule(node.source)) {
        this.handle(node, "Dynamic imports are not rewritten. Import Floodgate's package here.");
      } else if (node.type === "CallExpression" && parent?.type !== "VariableDeclarator" && parent?.type !== "MemberExpression") {
        const required = requiredModule(node);
        if (required !== undefined && modules.includes(required.module))
          this.handle(node, "This `require` is not rewritten. Write const { rateLimit } = require(...) first.");
      }
    });
    return found;
  }

  /** The calls of what was imported. `isBuilder` says which exports build a limit. */
  calls(imports: readonly Import[], isBuilder: (exported: string) => boolean): Call[] {
    const found: Call[] = [];
    walk(this.program, (node, parent) => {
      if (node.type !== "CallExpression" && node.type !== "NewExpression") return;
      const exported = this.exportedName(node.callee, imports);
      if (exported !== undefined && isBuilder(exported)) found.push({ node, exported, parent });
    });
    return found;
  }

  /** Which export of the package an expression is. */
  exportedName(node: Node, imports: readonly Import[]): string | undefined {
    const bindings = imports.flatMap((statement) => statement.bindings);
    const inner = bare(node);
    if (inner.type === "Identifier") {
      const binding = bindings.find(({ local }) => local === inner.name);
      return binding?.exported === "*" ? "default" : binding?.exported;
    }
    if (inner.type !== "MemberExpression" || inner.object.type !== "Identifier") return undefined;
    const { name } = inner.object;
    return bindings.some(({ local, exported }) => local === name && (exported === "*" || exported === "default"))
      ? propertyName(inner)
      : undefined;
  }

  /** Where a name is used, and where it is imported. */
  uses(name: string): readonly Node[] {
    const uses = this.#uses.get(name) ?? references(this.program, name);
    this.#uses.set(name, uses);
    return uses;
  }

  /** The initial value of a constant. */
  constant(name: string): { readonly value: Node; readonly uses: number } | undefined {
    let value: Node | undefined;
    walk(this.program, (node) => {
      if (node.type !== "VariableDeclaration" || node.kind !== "const") return;
      for (const { id, init } of node.declarations) {
        if (id.type === "Identifier" && id.name === name && init) value = init;
      }
    });
    return value && { value, uses: this.uses(name).length - 1 };
  }

  /** Whether the file declares a name, besides by these statements. */
  declares(name: string, imports: readonly Import[]): boolean {
    let isDeclared = false;
    walk(this.program, (node) => {
      if (imports.some((statement) => statement.node.start === node.start && statement.node.end === node.end)) return;
      const ids =
        node.type === "VariableDeclarator"
          ? [node.id]
          : "params" in node && Array.isArray(node.params)
            ? [...node.params, ...("id" in node && node.id ? [node.id] : [])]
            : node.type === "ImportSpecifier" || node.type === "ImportDefaultSpecifier" || node.type === "ImportNamespaceSpecifier"
              ? [node.local]
              : [];
      const inOwnImport = imports.some(({ node: own }) => start(own) <= start(node) && end(node) <= end(own));
      if (!inOwnImport && ids.some((id) => id.type === "Identifier" && id.name === name)) isDeclared = true;
    });
    return isDeclared;
  }
}

export function start(node: Node): number {
  return node.start as number;
}

export function end(node: Node): number {
  return node.end as number;
}

function parsed(name: string, code: string): File {
  // Standard input has no name that says which it is.
  const isTypeScript = name === "stdin" || /\.[cm]?tsx?$/.test(name);
  const isPlainTypeScript = isTypeScript && !name.endsWith("x");
  try {
    return parse(code, {
      sourceType: "unambiguous",
      allowReturnOutsideFunction: true,
      plugins: isTypeScript ? ["typescript", "decorators-legacy", ...(isPlainTypeScript ? [] : (["jsx"] as const))] : ["jsx"],
    });
  } catch (error) {
    const { loc, message } = error as Error & { loc?: { line: number; column: number } };
    const at = loc === undefined ? "" : `:${loc.line}:${loc.column + 1}`;
    throw new Failure("refused", `${name}${at}: this is not JavaScript that can be read: ${message.replace(/ \(\d+:\d+\)$/, "")}`);
  }
}

function importBindings(node: Extract<Node, { type: "ImportDeclaration" }>): Binding[] {
  return node.specifiers.map((specifier) => {
    const { name: local } = specifier.local;
    const isType = node.importKind === "type";
    if (specifier.type === "ImportDefaultSpecifier") return { local, exported: "default", isType };
    if (specifier.type === "ImportNamespaceSpecifier") return { local, exported: "*", isType };
    const { imported, importKind } = specifier;
    return {
      local,
      exported: imported.type === "Identifier" ? imported.name : imported.value,
      isType: isType || importKind === "type",
    };
  });
}

/** `require("x")`, or `require("x").property`. */
function requiredModule(node: Node): { readonly module: string; readonly property?: string | undefined } | undefined {
  const inner = bare(node);
  if (inner.type === "MemberExpression") {
    const required = requiredModule(inner.object);
    return required && { ...required, property: propertyName(inner) };
  }
  if (inner.type !== "CallExpression" || inner.callee.type !== "Identifier" || inner.callee.name !== "require") return undefined;
  const [given] = inner.arguments;
  return given?.type === "StringLiteral" ? { module: given.value } : undefined;
}

function requireBindings(id: Node, property: string | undefined): Binding[] | undefined {
  if (id.type === "Identifier") return [{ local: id.name, exported: property ?? "*", isType: false }];
  if (id.type !== "ObjectPattern" || property !== undefined) return undefined;
  const bindings: Binding[] = [];
  for (const element of id.properties) {
    if (element.type !== "ObjectProperty" || element.key.type !== "Identifier" || element.value.type !== "Identifier") return undefined;
    bindings.push({ local: element.value.name, exported: element.key.name, isType: false });
  }
  return bindings;
}
