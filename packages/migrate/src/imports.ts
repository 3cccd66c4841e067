import type { Node } from "@babel/types";
import type { Binding, Import } from "./loads.js";
import { entryOf } from "./nodes.js";
import type { MiddlewareRules, Rewriting } from "./rewriting.js";
import { end, isInside, start } from "./source-text.js";

/** Rewrites the imports of a file, once its calls are rewritten. What is still needed of the library stays imported. */
export function rewriteImports(rewriting: Rewriting, rules: MiddlewareRules): void {
  const { source, imports, rewritten } = rewriting;
  const builders = rewritten.flatMap(({ builder }) => builder ?? []);
  for (const { node } of builders) rewriting.done(node);
  const ours = new Set<string>();
  const kept = imports.map((statement) =>
    statement.bindings.filter((binding) => staysImported(rewriting, rules, statement, binding, ours)),
  );
  // The library's function stays imported beside ours, if a call of it stays.
  const isTaken = source.declares("rateLimit", imports) || kept.flat().some(({ local }) => local === "rateLimit");
  const name = isTaken ? "floodgateRateLimit" : "rateLimit";
  for (const { node, from } of builders) {
    const load = source.loadCode(node, rules.ours);
    source.edits.overwrite(from, end(node), load === undefined ? name : `${load}.rateLimit`);
    if (load === undefined) ours.add(isTaken ? `rateLimit as ${name}` : name);
  }
  for (const name of rewriting.needed.get(rules.ours) ?? []) ours.add(name);
  // Ours come first.
  const needed = new Map([[rules.ours, [...ours].sort()]]);
  for (const [module, names] of rewriting.needed) if (module !== rules.ours) needed.set(module, [...names]);
  for (const [i, statement] of imports.entries()) {
    const { node } = statement;
    const text = source.text(node);
    const bindings = kept[i] ?? [];
    const lines: string[] = [];
    if (i === 0) for (const [module, names] of needed) if (names.length > 0) lines.push(line(text, statement, names, module));
    if (bindings.length === statement.bindings.length) lines.push(text);
    else if (bindings.length > 0) lines.push(line(text, statement, bindings.map(bindingCode), statement.module));
    if (lines.length > 0) source.replace(node, lines.join(source.newline));
    else source.edits.remove(start(node), source.nextLine(end(node)));
  }
}

/** Rewrites the uses of a type. @returns whether what is imported is still used; then it is left to do by hand. */
function staysImported(
  rewriting: Rewriting,
  rules: MiddlewareRules,
  statement: Import,
  { local, exported }: Binding,
  ours: Set<string>,
): boolean {
  const { source, calls, rewritten } = rewriting;
  const uses = source.uses(local).filter((use) => !isInside(use, statement.node));
  const renamed = entryOf(rules.types ?? {}, exported);
  if (renamed !== undefined && calls.length === rewritten.length) {
    for (const use of uses) source.replace(use, renamed);
    ours.add(statement.isRequire ? renamed : `type ${renamed}`);
    return false;
  }
  const left = uses.filter((use) => !rewriting.isDone(use));
  // What uses it in a call that stays is reported with the call.
  const staying = new Set<Node>(calls.filter((call) => !rewritten.includes(call)).map(({ node }) => node));
  const isReported = (use: Node) => [use, ...source.around(use)].some((outer) => staying.has(outer));
  for (const use of left) if (!isReported(use)) source.handle(use, `\`${local}\` of ${statement.module} is still used here.`);
  return left.length > 0;
}

function bindingCode({ local, exported, isType }: Binding): string {
  return `${isType ? "type " : ""}${exported}${local === exported ? "" : ` as ${local}`}`;
}

/** An import in the style of another one. */
function line(like: string, { isRequire }: Import, names: readonly string[], module: string): string {
  const quote = like.includes("'") ? "'" : '"';
  const semicolon = like.endsWith(";") ? ";" : "";
  if (!isRequire) return `import { ${names.join(", ")} } from ${quote}${module}${quote}${semicolon}`;
  return `const { ${names.join(", ").replaceAll(" as ", ": ")} } = require(${quote}${module}${quote})${semicolon}`;
}
