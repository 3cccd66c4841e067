import { join } from "node:path";
import ts from "typescript";
import { repository } from "../src/documents.js";

export interface Program {
  readonly checker: ts.TypeChecker;
  /** What a file exports; of re-exports, what is declared elsewhere. */
  exportsOf(file: string): ts.Symbol[];
}

/** The declarations of the packages, as users' compilers read them. */
export function programOf(files: readonly string[]): Program {
  const program = ts.createProgram(files, {
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: true,
    types: ["node"],
    typeRoots: [join(repository, "node_modules/@types")],
  });
  const checker = program.getTypeChecker();
  return {
    checker,
    exportsOf(file) {
      const source = program.getSourceFile(file);
      const module = source && checker.getSymbolAtLocation(source);
      if (module === undefined) throw new Error(`There is no ${file}. Build first: npm run build`);
      return checker.getExportsOfModule(module).map((one) => (one.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(one) : one));
    },
  };
}
