import { Failure } from "../failure.js";
import { rewriteImports } from "./imports.js";
import type { Library } from "./libraries.js";
import { peers } from "./peers.js";
import { Rewriting } from "./rewriting.js";
import { end, type Remark, Source, start } from "./source.js";

/** A file rewritten. */
export interface Migration {
  readonly code: string;
  readonly calls: readonly { readonly line: number; readonly before: string; readonly after: string }[];
  /** What the command could not rewrite. */
  readonly byHand: readonly Remark[];
  readonly notes: readonly Remark[];
  /** The packages that the new code imports. */
  readonly packages: readonly string[];
}

/**
 * Rewrites the calls of a library in a file.
 * @throws Failure if the file cannot be parsed, or does not use the library.
 */
export function migrate(library: Library, file: string, code: string): Migration {
  const rules = peers[library];
  const source = new Source(file, code);
  const rewriting = new Rewriting(source, rules);
  if (rewriting.imports.length === 0 && source.byHand.length === 0) {
    throw new Failure("refused", `${file} does not import ${library}.`);
  }
  if (rewriting.calls.length > 0) {
    for (const call of rewriting.calls) rules.rewrite(rewriting, call);
    rewriteImports(rewriting, rules);
  }
  const after = source.edits.toString();
  return {
    code: after,
    calls: rewriting.calls.map(({ node }) => ({
      line: node.loc?.start.line ?? 1,
      before: source.text(node),
      after: source.edits.slice(start(node), end(node)),
    })),
    byHand: sorted(source.byHand),
    notes: sorted(source.notes),
    packages: [...new Set([rules.ours, ...rewriting.needed.keys()])],
  };
}

function sorted(remarks: readonly Remark[]): Remark[] {
  return remarks
    .filter(
      ({ line, column, message }, i) => remarks.findIndex((r) => r.line === line && r.column === column && r.message === message) === i,
    )
    .sort((a, b) => a.line - b.line || a.column - b.column);
}
