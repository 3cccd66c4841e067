import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { repository } from "../src/documents.js";
import { programOf } from "./program.js";

// The options of the packages, as their types and docstrings say.

export interface Option {
  readonly name: string;
  /** What the docstring calls the default, if that is a value; without quotes, and numbers without commas. */
  readonly default: string | undefined;
  /** The names of the options inside this one. */
  readonly inside: readonly string[];
}

export interface OptionsOf {
  /** What one imports, such as `@floodgate/core/store`. */
  readonly entry: string;
  /** The name of the function that takes them. */
  readonly name: string;
  readonly options: readonly Option[];
}

/** The options of every function that a package exports. */
export function allOptions(): OptionsOf[] {
  const entries = declarations();
  const { checker, exportsOf } = programOf(entries.map(({ file }) => file));
  return entries.flatMap(({ entry, folder, file }) =>
    exportsOf(file).flatMap((symbol) => {
      // The adapters export functions of core, which are core's to document.
      const declaration = symbol.valueDeclaration;
      if (declaration === undefined || !isIn(folder, declaration)) return [];
      const options = parametersOf(checker, symbol, declaration).flatMap((parameter) => optionsOf(checker, parameter));
      return options.length === 0 ? [] : [{ entry, name: symbol.name, options: uniqueByName(options) }];
    }),
  );
}

/** The declarations that the compiler wrote for each entry point. */
function declarations(): { readonly entry: string; readonly folder: string; readonly file: string }[] {
  const packages = join(repository, "packages");
  return readdirSync(packages).flatMap((name) => {
    const folder = join(packages, name);
    const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    return Object.entries<{ require?: { types?: string } }>(manifest.exports).flatMap(([path, { require }]) =>
      require?.types === undefined ? [] : [{ entry: `${manifest.name}${path.slice(1)}`, folder, file: join(folder, require.types) }],
    );
  });
}

function isIn(folder: string, declaration: ts.Node): boolean {
  return declaration.getSourceFile().fileName.startsWith(`${folder}/`);
}

function parametersOf(checker: ts.TypeChecker, symbol: ts.Symbol, declaration: ts.Node): ts.Symbol[] {
  const signatures = checker.getTypeOfSymbolAtLocation(symbol, declaration).getCallSignatures();
  return signatures.flatMap(({ parameters }) => parameters).filter(({ name }) => name === "options");
}

function optionsOf(checker: ts.TypeChecker, parameter: ts.Symbol): Option[] {
  return propertiesOf(checker, parameter).map((property) => ({
    name: property.name,
    default: defaultIn(ts.displayPartsToString(property.getDocumentationComment(checker))),
    // What is in a policy are the options of the function that makes it.
    inside: property.name === "policy" ? [] : [...new Set(propertiesOf(checker, property).map(({ name }) => name))],
  }));
}

/** The properties of a value that may be given, if our packages declare it as an object. Functions and stores have none. */
function propertiesOf(checker: ts.TypeChecker, given: ts.Symbol): ts.Symbol[] {
  const type = checker.getNonNullableType(checker.getTypeOfSymbol(given));
  const kinds = type.isUnion() ? type.types : [type];
  const objects = kinds.filter((kind) => kind.getCallSignatures().length === 0 && !checker.isArrayLikeType(kind));
  const properties = objects.flatMap((kind) => kind.getProperties());
  const isOurs = ({ declarations }: ts.Symbol) =>
    declarations?.every((node) => ts.isPropertySignature(node) && isIn(join(repository, "packages"), node));
  return properties.every(isOurs) ? properties : [];
}

/** The value behind "Default" in a docstring. */
export function defaultIn(docstring: string): string | undefined {
  const [, value] = /\bDefault `?("[^"`]*"|true|false|\d[\d,.]*(?<=\d)(?:ms|[smhd])?)/.exec(docstring) ?? [];
  return value && plainValue(value);
}

/** A value as text and docs may write it: without quotes, code marks, and commas in numbers. */
export function plainValue(text: string): string {
  return text.replace(/["`]/g, "").replace(/(?<=\d),(?=\d{3})/g, "");
}

function uniqueByName(options: readonly Option[]): Option[] {
  return [...new Map(options.map((option) => [option.name, option])).values()];
}
