import { join } from "node:path";
import ts from "typescript";
import { repository } from "../src/documents.js";
import { programOf } from "./program.js";

export interface EventType {
  /** The value of `type`, such as `limited`. */
  readonly type: string;
  readonly fields: readonly { readonly name: string; readonly type: string }[];
}

/** Every event that the union in core has, with its fields but `type`. */
export function allEvents(): EventType[] {
  const file = join(repository, "packages/core/dist/events/events.d.ts");
  const { checker, exportsOf } = programOf([file]);
  const union = exportsOf(file).find(({ name }) => name === "FloodgateEvent");
  if (union === undefined) throw new Error(`${file} has no FloodgateEvent`);
  const type = checker.getDeclaredTypeOfSymbol(union);
  return (type.isUnion() ? type.types : [type]).flatMap((event) => {
    const fields = event.getProperties().filter(({ name }) => name !== "type");
    const kind = event.getProperty("type");
    const named = kind === undefined ? [] : [checker.getTypeOfSymbol(kind)].flatMap((one) => (one.isUnion() ? one.types : [one]));
    return named.map((one) => ({
      type: one.isStringLiteral() ? one.value : "",
      fields: fields.map((field) => ({ name: field.name, type: wordsOf(checker, field) })),
    }));
  });
}

/** The type of a field as the docs write it: `string, optional`; `Decision, or undefined`; the values of a union of texts. */
function wordsOf(checker: ts.TypeChecker, field: ts.Symbol): string {
  const type = checker.getTypeOfSymbol(field);
  const given = type.flags & ts.TypeFlags.Unknown ? type : checker.getNonNullableType(type);
  const isTexts = given.isUnion() && given.types.every((one) => one.isStringLiteral());
  const name = checker.typeToString(given, undefined, ts.TypeFormatFlags.NoTruncation);
  const values = isTexts && given.types.length < 5 ? given.types.map((one) => (one as ts.StringLiteralType).value).join(", ") : name;
  if (field.flags & ts.SymbolFlags.Optional) return `${values}, optional`;
  return type.isUnion() && type.types.some(({ flags }) => flags & ts.TypeFlags.Undefined) ? `${values}, or undefined` : values;
}
