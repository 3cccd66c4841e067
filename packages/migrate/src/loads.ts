import type { Node, Statement } from "@babel/types";
import { bare, propertyName } from "./nodes.js";

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

/** What an `import` takes. */
export function importBindings(node: Extract<Node, { type: "ImportDeclaration" }>): Binding[] {
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

/** A module that an expression loads. */
export interface Loaded {
  readonly module: string;
  /** The call of `require` or `import`. */
  readonly node: Node;
  readonly isPromise: boolean;
  readonly property?: string | undefined;
}

/** `require("x")`, `require("x").property`, `import("x")` or `(await import("x")).property`. */
export function loadedModule(node: Node): Loaded | undefined {
  const inner = bare(node);
  if (inner.type === "AwaitExpression") return loadedModule(inner.argument);
  if (inner.type === "MemberExpression") {
    const loaded = loadedModule(inner.object);
    return loaded && { ...loaded, property: propertyName(inner) };
  }
  const isPromise = inner.type === "ImportExpression";
  const isRequire = inner.type === "CallExpression" && inner.callee.type === "Identifier" && inner.callee.name === "require";
  const given = isPromise ? inner.source : isRequire ? inner.arguments[0] : undefined;
  return given?.type === "StringLiteral" ? { module: given.value, node: inner, isPromise } : undefined;
}

/** What a declaration takes of a loaded module, or of a property of it; undefined if that is not certain. */
export function requireBindings(id: Node, property: string | undefined): Binding[] | undefined {
  if (id.type === "Identifier") return [{ local: id.name, exported: property ?? "*", isType: false }];
  if (id.type !== "ObjectPattern" || property !== undefined) return undefined;
  const bindings: Binding[] = [];
  for (const element of id.properties) {
    if (element.type !== "ObjectProperty" || element.key.type !== "Identifier" || element.value.type !== "Identifier") return undefined;
    bindings.push({ local: element.value.name, exported: element.key.name, isType: false });
  }
  return bindings;
}
