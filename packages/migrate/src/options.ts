import type { ObjectExpression, ObjectMethod, ObjectProperty } from "@babel/types";
import { end, type Source, start } from "./source.js";

export type Property = ObjectProperty | ObjectMethod;

/** An object literal of options that is being rewritten. Comments and layout stay. */
export class Options {
  readonly #source: Source;
  readonly #object: ObjectExpression;
  readonly #properties: readonly Property[];
  readonly #removed = new Set<Property>();
  readonly #known = new Set<string>();
  readonly #added: string[] = [];

  constructor(source: Source, object: ObjectExpression) {
    this.#source = source;
    this.#object = object;
    this.#properties = object.properties.filter((property) => property.type !== "SpreadElement");
  }

  get object(): ObjectExpression {
    return this.#object;
  }

  /** The option that is given under one of these names. */
  take(...names: string[]): Property | undefined {
    for (const name of names) this.#known.add(name);
    const [given, ...others] = this.#properties.filter((property) => names.includes(nameOf(property) ?? ""));
    for (const other of others) this.#source.handle(other, "This option is given twice. Remove one of them.");
    return given;
  }

  /** Writes another option in place of one. */
  set(property: Property, code: string): void {
    this.#source.edits.overwrite(start(property), end(property), code);
  }

  /** Gives an option another name. Its value stays. */
  rename(property: Property, name: string): void {
    if (nameOf(property) === name) return;
    if (property.type === "ObjectProperty" && property.shorthand) this.set(property, `${name}: ${this.#source.text(property.key)}`);
    else this.#source.edits.overwrite(start(property.key), end(property.key), name);
  }

  remove(property: Property | undefined): void {
    if (property !== undefined) this.#removed.add(property);
  }

  add(code: string): void {
    this.#added.push(code);
  }

  /** The options that were never taken, and whether another object is spread into this one. */
  unknown(): { readonly properties: readonly Property[]; readonly hasSpread: boolean } {
    return {
      properties: this.#properties.filter((property) => !this.#known.has(nameOf(property) ?? "")),
      hasSpread: this.#object.properties.some(({ type }) => type === "SpreadElement"),
    };
  }

  /** Removes and adds what was said. Called once, when all options are rewritten. */
  finish(): void {
    const { properties } = this.#object;
    const isRemoved = (property: (typeof properties)[number]) => this.#removed.has(property as Property);
    const lastKept = properties.reduce((last, property, i) => (isRemoved(property) ? last : i), -1);
    for (const [i, property] of properties.entries()) {
      const next = properties[i + 1];
      if (isRemoved(property) && i < lastKept && next !== undefined) this.#source.edits.remove(start(property), start(next));
    }
    const last = properties[lastKept];
    const final = properties.at(-1);
    if (last === undefined) {
      this.#source.edits.overwrite(
        start(this.#object),
        end(this.#object),
        this.#added.length === 0 ? "{}" : `{ ${this.#added.join(", ")} }`,
      );
      return;
    }
    if (final !== undefined && final !== last) this.#source.edits.remove(end(last), end(final));
    const before = properties[lastKept - 1]?.loc?.end.line ?? this.#object.loc?.start.line;
    const isOneLine = before === last.loc?.start.line;
    const separator = isOneLine ? ", " : `,\n${" ".repeat(last.loc?.start.column ?? 2)}`;
    if (this.#added.length > 0) this.#source.edits.appendLeft(end(last), this.#added.map((code) => separator + code).join(""));
  }
}

export function nameOf(property: Property): string | undefined {
  if (property.computed) return undefined;
  if (property.key.type === "Identifier") return property.key.name;
  return property.key.type === "StringLiteral" ? property.key.value : undefined;
}
