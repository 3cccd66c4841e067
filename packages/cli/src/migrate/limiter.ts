import type { Node } from "@babel/types";
import { entryOf, propertyName, walk } from "./nodes.js";
import type { Rewriting } from "./rewriting.js";
import type { Call } from "./source.js";
import { end, start } from "./source.js";

// What the rules of libraries without a middleware have in common: a limiter in a variable, and calls of its methods.

/** A call of a method of the limiter: `limiter.consume(key)`. */
export interface Use {
  readonly method: string;
  readonly call: Extract<Node, { type: "CallExpression" }>;
  readonly property: Node;
  /** The parent of the call, or of the `await` around it. */
  readonly parent: Node | undefined;
}

/** The calls of a limiter's methods. The limiter is in a variable, a property, or a field: `const limiter = new …`. */
export function usesOf({ source }: Rewriting, { node, parent }: Call): Use[] {
  const name = nameOf(node, parent);
  if (name === undefined) return [];
  const uses: Use[] = [];
  const parents = new Map<Node, Node | undefined>();
  walk(source.program, (inner, outer) => {
    parents.set(inner, outer);
    if (inner.type !== "CallExpression" || inner.callee.type !== "MemberExpression") return;
    const { object, property } = inner.callee;
    const method = propertyName(inner.callee);
    const isLimiter = object.type === "Identifier" ? object.name === name : propertyName(object) === name;
    if (method === undefined || !isLimiter) return;
    const around = outer?.type === "AwaitExpression" ? parents.get(outer) : outer;
    uses.push({ method, call: inner, property, parent: around });
  });
  return uses;
}

function nameOf(node: Node, parent: Node | undefined): string | undefined {
  if (parent?.type === "VariableDeclarator" && parent.id.type === "Identifier") return parent.id.name;
  const isMember = parent?.type === "ObjectProperty" || parent?.type === "ClassProperty";
  if (isMember && parent.key.type === "Identifier") return parent.key.name;
  return parent?.type === "AssignmentExpression" && parent.right === node ? propertyName(parent.left) : undefined;
}

/**
 * Renames what is taken from a result: `const { success } = await …` becomes `const { allowed: success } = await …`.
 * @returns whether all of it is known.
 */
export function renameResult({ source }: Rewriting, { parent }: Use, names: Readonly<Record<string, string>>): boolean {
  if (parent?.type !== "VariableDeclarator" || parent.id.type !== "ObjectPattern") return parent?.type === "ExpressionStatement";
  let isKnown = true;
  for (const property of parent.id.properties) {
    if (property.type !== "ObjectProperty" || property.key.type !== "Identifier") return false;
    const ours = entryOf(names, property.key.name);
    if (ours === undefined) isKnown = false;
    else if (ours === property.key.name) continue;
    else if (property.shorthand) source.edits.overwrite(start(property), end(property), `${ours}: ${source.text(property.value)}`);
    else source.replace(property.key, ours);
  }
  return isKnown;
}
