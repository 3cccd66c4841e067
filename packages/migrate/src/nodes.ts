import { type Expression, getBindingIdentifiers, type Node, VISITOR_KEYS } from "@babel/types";

/** An entry by a name from the file. Undefined for names that every object has, such as `constructor`. */
export function entryOf<T>(record: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}

/** Whether a node, or one inside it, passes a test. */
export function some(node: Node, test: (node: Node) => boolean): boolean {
  return test(node) || children(node).some((child) => some(child, test));
}

/** Whether code reads `this` of the function that it is in. */
export function readsThis(node: Node): boolean {
  const isOwn =
    node.type === "FunctionExpression" || node.type === "FunctionDeclaration" || node.type === "ObjectMethod" || node.type === "ClassBody";
  return node.type === "ThisExpression" || (!isOwn && children(node).some(readsThis));
}

/** Visits a node and all nodes in it, parents first. */
export function walk(node: Node, visit: (node: Node, parent: Node | undefined) => void, parent?: Node): void {
  visit(node, parent);
  for (const child of children(node)) walk(child, visit, node);
}

function children(node: Node): Node[] {
  const parts = node as unknown as Readonly<Record<string, Node | readonly (Node | null)[] | null | undefined>>;
  return (VISITOR_KEYS[node.type] ?? []).flatMap((key) => parts[key] ?? []).filter((child) => child !== null);
}

/** An expression without TypeScript's additions: `x as T`, `x satisfies T`, `x!`. */
export function bare(node: Node): Node {
  const isWrapped =
    node.type === "TSAsExpression" ||
    node.type === "TSSatisfiesExpression" ||
    node.type === "TSNonNullExpression" ||
    node.type === "ParenthesizedExpression";
  return isWrapped ? bare(node.expression) : node;
}

/** The value of a constant: literals, and arithmetic of numbers such as `15 * 60 * 1000`. Undefined for any other expression. */
export function constantOf(node: Node): string | number | boolean | null | undefined {
  const inner = bare(node);
  switch (inner.type) {
    case "StringLiteral":
    case "NumericLiteral":
    case "BooleanLiteral":
      return inner.value;
    case "NullLiteral":
      return null;
    case "TemplateLiteral":
      return inner.expressions.length === 0 ? (inner.quasis[0]?.value.cooked ?? undefined) : undefined;
    case "UnaryExpression": {
      const value = constantOf(inner.argument);
      return inner.operator === "-" && typeof value === "number" ? -value : undefined;
    }
    case "BinaryExpression":
      return arithmetic(inner.operator, constantOf(inner.left), constantOf(inner.right));
    default:
      return undefined;
  }
}

function arithmetic(operator: string, left: unknown, right: unknown): number | undefined {
  if (typeof left !== "number" || typeof right !== "number") return undefined;
  if (operator === "*") return left * right;
  if (operator === "+") return left + right;
  if (operator === "-") return left - right;
  return operator === "/" ? left / right : undefined;
}

export type FunctionNode = Extract<
  Node,
  { type: "ArrowFunctionExpression" | "FunctionExpression" | "FunctionDeclaration" | "ObjectMethod" }
>;

/** Whether a node is a function where an expression or a method stands. */
export function isFunction(node: Node): node is Exclude<FunctionNode, { type: "FunctionDeclaration" }> {
  return node.type === "ArrowFunctionExpression" || node.type === "FunctionExpression" || node.type === "ObjectMethod";
}

/** The name of a parameter; undefined if it is missing or a pattern. */
export function parameterName(node: FunctionNode, index: number): string | undefined {
  const parameter = node.params[index];
  return parameter?.type === "Identifier" ? parameter.name : undefined;
}

/** The references to a name in a node: not keys of objects, not properties. */
export function references(node: Node, name: string): Node[] {
  const found: Node[] = [];
  walk(node, (inner, parent) => {
    if (inner.type === "Identifier" && inner.name === name && !isLabel(inner, parent)) found.push(inner);
  });
  return found;
}

/** Whether an identifier is the key of an object or the name of a property. */
export function isLabel(node: Node, parent: Node | undefined): boolean {
  if (parent === undefined) return false;
  if (isMember(parent)) return parent.property === node && !parent.computed;
  if (parent.type === "ObjectProperty") return parent.key === node && !parent.computed && !parent.shorthand;
  if (parent.type === "ObjectMethod" || parent.type === "ClassMethod") return parent.key === node && !parent.computed;
  return parent.type.startsWith("Import") || parent.type.startsWith("TSPropertySignature");
}

type Member = Extract<Node, { type: "MemberExpression" | "OptionalMemberExpression" }>;

export function isMember(node: Node | undefined): node is Member {
  return node?.type === "MemberExpression" || node?.type === "OptionalMemberExpression";
}

/** The name of a property that is read: `name` of `object.name`. */
export function propertyName(node: Node): string | undefined {
  if (!isMember(node)) return undefined;
  if (node.computed) return node.property.type === "StringLiteral" ? node.property.value : undefined;
  return node.property.type === "Identifier" ? node.property.name : undefined;
}

/** The name of what a value is kept in: a variable, a property, a field. */
export function nameOfHolder(node: Node): string | undefined {
  if (node.type === "VariableDeclarator") return node.id.type === "Identifier" ? node.id.name : undefined;
  if (node.type === "ObjectProperty" || node.type === "ClassProperty") {
    if (node.key.type === "StringLiteral") return node.key.value;
    return node.key.type === "Identifier" && node.computed !== true ? node.key.name : undefined;
  }
  if (node.type !== "AssignmentExpression") return undefined;
  return node.left.type === "Identifier" ? node.left.name : propertyName(node.left);
}

/** A call or `new`. */
export type CallNode = Extract<Node, { type: "CallExpression" | "NewExpression" }>;

export function argument(call: CallNode, index: number): Expression | undefined {
  const given = call.arguments[index];
  return given === undefined || given.type === "SpreadElement" || given.type === "ArgumentPlaceholder" ? undefined : given;
}

/** The names that a pattern or a declaration declares: `a` and `b` of `{ a, x: [b] }`. */
export function names(pattern: Node): string[] {
  return Object.keys(getBindingIdentifiers(pattern));
}

const comparisons = ["==", "===", "!=", "!==", "<", ">", "<=", ">=", "in", "instanceof"];
const predicates = ["includes", "startsWith", "endsWith", "test", "has", "some", "every", "isArray"];

/** Whether an expression is surely true or false, and nothing else. */
function isBoolean(node: Node): boolean {
  const inner = bare(node);
  switch (inner.type) {
    case "BooleanLiteral":
      return true;
    case "UnaryExpression":
      return inner.operator === "!";
    case "BinaryExpression":
      return comparisons.includes(inner.operator);
    case "LogicalExpression":
      return isBoolean(inner.left) && isBoolean(inner.right);
    case "ConditionalExpression":
      return isBoolean(inner.consequent) && isBoolean(inner.alternate);
    case "CallExpression":
      return inner.callee.type === "Identifier" ? inner.callee.name === "Boolean" : predicates.includes(propertyName(inner.callee) ?? "");
    default:
      return false;
  }
}

/** Whether a function surely returns true or false. */
export function returnsBoolean({ body, async, returnType }: FunctionNode): boolean {
  if (returnType?.type === "TSTypeAnnotation" && returnType.typeAnnotation.type === "TSBooleanKeyword") return true;
  if (body.type !== "BlockStatement") return !async && isBoolean(body);
  if (body.body.at(-1)?.type !== "ReturnStatement") return false;
  let returns = true;
  const visit = (node: Node): void => {
    if (node.type === "ReturnStatement" && !(node.argument && isBoolean(node.argument))) returns = false;
    for (const child of children(node)) if (!isFunction(child) && child.type !== "FunctionDeclaration") visit(child);
  };
  visit(body);
  return returns;
}
