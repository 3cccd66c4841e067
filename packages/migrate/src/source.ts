import { parse } from "@babel/parser";
import type { File, Node } from "@babel/types";
import { type Import, importBindings, loadedModule, requireBindings } from "./loads.js";
import { argument, bare, type FunctionNode, isFunction, isLabel, names, propertyName, walk } from "./nodes.js";
import { isInside, SourceText, start } from "./source-text.js";

/** Something that a person has to do or to know. */
export interface Remark {
  /** From 1. */
  readonly line: number;
  /** From 1. */
  readonly column: number;
  readonly message: string;
}

/** A place where a file says what is limited: mostly a call that builds a limit. */
export interface Call {
  readonly node: Node;
  readonly parent: Node | undefined;
  /** The expression of the options. */
  readonly given: Node | undefined;
  /** The library's function that makes the limit. Ours replaces the code from `from` to its end. */
  readonly builder?: { readonly node: Node; readonly from: number } | undefined;
}

/** What an expression is of a package: `default`, `rateLimit`, … */
interface Exported {
  readonly exported: string;
  readonly module: string;
}

/** A file that is being rewritten. All of it is visited once, because it may have many calls. */
export class Source extends SourceText {
  readonly byHand: Remark[] = [];
  readonly notes: Remark[] = [];
  readonly program: Node;
  #modules: readonly string[] = [];
  readonly #parents = new Map<Node, Node | undefined>();
  readonly #uses = new Map<string, Node[]>();
  /** The values of constants that are not exported and have no type of their own, and all functions. */
  readonly #values = new Map<string, Node>();
  /** The variables that hold the environment, and those that hold a text of it. */
  readonly #environments = new Set<string>();
  readonly #environmentTexts = new Set<string>();
  /** What declares a name. */
  readonly #declarations = new Map<string, Node[]>();

  /** @throws SyntaxError if the file cannot be parsed. */
  constructor(name: string, code: string) {
    const { program, comments } = parsed(name, code);
    super(code, comments ?? []);
    this.program = program;
    walk(this.program, (node, parent) => this.#index(node, parent));
  }

  #index(node: Node, parent: Node | undefined): void {
    this.#parents.set(node, parent);
    if (node.type === "Identifier" && !isLabel(node, parent)) addTo(this.#uses, node.name, node);
    if (node.type === "FunctionDeclaration" && node.id) this.#values.set(node.id.name, node);
    if (node.type === "VariableDeclaration" && node.kind === "const") {
      for (const { id, init } of node.declarations) {
        if (id.type !== "Identifier" || !init) continue;
        const isPrivate = parent?.type !== "ExportNamedDeclaration" && !id.typeAnnotation;
        if (isPrivate || isFunction(bare(init))) this.#values.set(id.name, bare(init));
      }
    }
    if (declares.test(node.type)) for (const name of names(node)) addTo(this.#declarations, name, node);
    if (node.type !== "VariableDeclarator" || !node.init) return;
    const { id, init } = node;
    if (id.type === "ObjectPattern" && this.#isEnvironment(init)) for (const name of names(id)) this.#environmentTexts.add(name);
    if (id.type === "Identifier" && this.#isEnvironment(init)) this.#environments.add(id.name);
    if (id.type === "Identifier" && this.isTextOfEnvironment(init)) this.#environmentTexts.add(id.name);
  }

  #isEnvironment(node: Node): boolean {
    const value = bare(node);
    if (value.type === "Identifier") return this.#environments.has(value.name);
    return /^(process|import\.meta)\.env$/.test(this.text(value));
  }

  /** Whether an expression is a text of the environment: `process.env.MAX || 100`, or a variable of one. */
  isTextOfEnvironment(node: Node): boolean {
    const value = bare(node);
    if (value.type === "LogicalExpression") return this.isTextOfEnvironment(value.left);
    if (value.type === "ConditionalExpression")
      return [value.consequent, value.alternate].some((branch) => this.isTextOfEnvironment(branch));
    if (value.type === "Identifier") return this.#environmentTexts.has(value.name);
    return propertyName(value) !== undefined && "object" in value && this.#isEnvironment(value.object as Node);
  }

  /** The nodes around a node, from the inside out. */
  *around(node: Node): Generator<Node> {
    for (let outer = this.#parents.get(node); outer !== undefined; outer = this.#parents.get(outer)) yield outer;
  }

  parentOf(node: Node): Node | undefined {
    return this.#parents.get(node);
  }

  handle(node: Node, message: string): void {
    addRemark(this.byHand, node, message);
  }

  note(node: Node, message: string): void {
    addRemark(this.notes, node, message);
  }

  /** The statements that import one of these modules. */
  imports(modules: readonly string[]): Import[] {
    const found: Import[] = [];
    walk(this.program, (node) => {
      if (node.type === "ImportDeclaration" && modules.includes(node.source.value)) {
        found.push({ node, bindings: importBindings(node), isRequire: false, module: node.source.value });
      } else if (node.type === "VariableDeclaration") {
        const [{ id, init }, ...others] = node.declarations as [(typeof node.declarations)[0]];
        const loaded = init && loadedModule(init);
        if (!loaded || loaded.isPromise || others.length > 0 || !modules.includes(loaded.module)) return;
        const bindings = requireBindings(id, loaded.property);
        if (bindings !== undefined) found.push({ node, bindings, isRequire: true, module: loaded.module });
      } else if (node.type === "TSImportEqualsDeclaration" && node.moduleReference.type === "TSExternalModuleReference") {
        const { value } = node.moduleReference.expression;
        const bindings = [{ local: node.id.name, exported: "*", isType: false }];
        if (modules.includes(value)) found.push({ node, bindings, isRequire: false, module: value });
      }
    });
    this.#modules = modules;
    // One statement imports what all calls need, so each must see it.
    return found.length > 1 ? found.filter(({ node }) => this.parentOf(node) === this.program) : found;
  }

  /** Leaves to do by hand whatever else loads or mocks one of the modules. Calls load it where they stand. */
  handleLoads(imports: readonly Import[], calls: readonly Call[]): void {
    const known = new Set(calls.map(({ builder }) => builder && loadedModule(builder.node)?.node));
    const isModule = (node: Node | null | undefined): boolean => node?.type === "StringLiteral" && this.#modules.includes(node.value);
    walk(this.program, (node) => {
      if (known.has(node)) return;
      if ((node.type === "ExportNamedDeclaration" || node.type === "ExportAllDeclaration") && isModule(node.source)) {
        this.handle(node, `This passes on exports of ${node.source?.value}. Export what Floodgate has instead.`);
      } else if (node.type === "ImportExpression" && isModule(node.source)) {
        this.handle(node, "Dynamic imports are not rewritten. Import Floodgate's package here.");
      } else if (node.type === "TSImportType" && isModule(node.argument)) {
        this.handle(node, "Types of an `import()` are not rewritten. Import Floodgate's types here.");
      } else if (node.type === "CallExpression" && isModule(node.arguments[0])) {
        if (loadedModule(node) === undefined) this.handle(node, "This call names the library. Name Floodgate's package here.");
        else if (!imports.some(({ node: statement }) => isInside(node, statement)))
          this.handle(
            node,
            "This `require` is not rewritten. Write const { rateLimit } = require(...) in a statement of its own, at the top.",
          );
      }
    });
  }

  /** Code that loads another module as an expression does: `require("x")`. Undefined if the expression loads none. */
  loadCode(node: Node, module: string): string | undefined {
    const loaded = loadedModule(node);
    const code = loaded && this.text(loaded.node).replace(loaded.module, module);
    return code !== undefined && loaded?.isPromise ? `(await ${code})` : code;
  }

  /** Reports imports whose functions are never called: types, or options of another file. */
  handleImports(imports: readonly Import[]): void {
    for (const { node, module } of imports) this.handle(node, `${module} is imported here, and not called. Rewrite what uses it.`);
  }

  /** The calls of what was imported. `isBuilder` says which exports build a limit. */
  calls(imports: readonly Import[], isBuilder: (exported: Exported) => boolean): Call[] {
    const found: Call[] = [];
    walk(this.program, (node, parent) => {
      if (node.type !== "CallExpression" && node.type !== "NewExpression") return;
      const exported = this.exported(node.callee, imports);
      if (exported === undefined || !isBuilder(exported)) return;
      found.push({ node, parent, given: argument(node, 0), builder: { node: node.callee, from: start(node) } });
    });
    return found;
  }

  /** The package and the export that an expression refers to. */
  exported(node: Node, imports: readonly Import[]): Exported | undefined {
    const inner = bare(node);
    const loaded = loadedModule(inner);
    if (loaded !== undefined && this.#modules.includes(loaded.module))
      return { module: loaded.module, exported: loaded.property ?? "default" };
    for (const { bindings, module } of imports) {
      for (const { local, exported } of bindings) {
        if (inner.type === "Identifier" && inner.name === local) return { module, exported: exported === "*" ? "default" : exported };
        const isMember = inner.type === "MemberExpression" && inner.object.type === "Identifier" && inner.object.name === local;
        const property = isMember && (exported === "*" || exported === "default") ? propertyName(inner) : undefined;
        if (property !== undefined) return { module, exported: property };
      }
    }
    return undefined;
  }

  /** Where a name is used, and where it is imported. */
  uses(name: string): readonly Node[] {
    return this.#uses.get(name) ?? [];
  }

  /** The initial value of a constant that only this file reads, without a type of its own. */
  constant(name: string): { readonly value: Node; readonly uses: number } | undefined {
    const value = this.#values.get(name);
    return value && { value, uses: this.uses(name).length - 1 };
  }

  /** The value of a name, if the file shows it; else the expression itself. */
  knownValue(node: Node): Node {
    return (node.type === "Identifier" && this.#values.get(node.name)) || node;
  }

  /** Whether an expression may be undefined: an option that is passed on, but not a function or an import. */
  mayBeMissing(node: Node): boolean {
    if (this.functionOf(node) !== undefined) return false;
    return node.type !== "Identifier" || this.#declarations.get(node.name)?.some(({ type }) => !type.startsWith("Import")) === true;
  }

  /** The function that an expression is, if the file shows it. */
  functionOf(node: Node): FunctionNode | undefined {
    if (isFunction(node)) return node;
    if (node.type !== "Identifier") return undefined;
    const value = this.knownValue(node);
    return isFunction(value) || value.type === "FunctionDeclaration" ? value : undefined;
  }

  /** Whether the file declares a name, besides by these statements. */
  declares(name: string, imports: readonly Import[]): boolean {
    const others = (this.#declarations.get(name) ?? []).filter((node) => !imports.some(({ node: own }) => isInside(node, own)));
    return others.length > 0;
  }
}

function addRemark(remarks: Remark[], node: Node, message: string): void {
  const { line = 1, column = 0 } = node.loc?.start ?? {};
  const isKnown = remarks.some((one) => one.line === line && one.column === column + 1 && one.message === message);
  if (!isKnown) remarks.push({ line, column: column + 1, message });
}

function addTo(map: Map<string, Node[]>, name: string, node: Node): void {
  const known = map.get(name);
  if (known === undefined) map.set(name, [node]);
  else known.push(node);
}

/** The nodes that declare names. */
const declares = /^(VariableDeclarator|\w*Function(Declaration|Expression)|\w+Method|ClassDeclaration|Import\w*Specifier)$/;

function parsed(name: string, code: string): File {
  const isTypeScript = /\.[cm]?tsx?$/.test(name);
  const isPlain = isTypeScript && !name.endsWith("x");
  try {
    return parse(code, {
      sourceType: "unambiguous",
      allowReturnOutsideFunction: true,
      createImportExpressions: true,
      plugins: [
        isTypeScript ? "typescript" : "flow",
        ...(["decorators-legacy", "decoratorAutoAccessors", "deprecatedImportAssert", "exportDefaultFrom"] as const),
        ...(isPlain ? [] : (["jsx"] as const)),
      ],
    });
  } catch (error) {
    // Too many levels for the stack.
    if (error instanceof RangeError) throw error;
    const { loc, message } = error as Error & { loc?: { line: number; column: number } };
    const at = loc === undefined ? "" : `:${loc.line}:${loc.column + 1}`;
    throw new SyntaxError(`${name}${at}: this is not JavaScript that can be read: ${message.replace(/ \(\d+:\d+\)$/, "")}`);
  }
}
