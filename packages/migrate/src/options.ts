import type { Node, ObjectExpression, ObjectMethod, ObjectProperty } from "@babel/types";
import { bare, constantOf, type FunctionNode, isFunction, readsThis } from "./nodes.js";
import type { Source } from "./source.js";
import { end, start } from "./source-text.js";

export type Property = ObjectProperty | ObjectMethod;

/** An option that a call gives. */
export class Option {
  readonly property: Property;
  /** The value as an expression. A method is its own value. */
  readonly value: Node;
  /** The value of a constant; undefined for any other expression. */
  readonly constant: ReturnType<typeof constantOf>;
  /** The code of the value. */
  readonly code: string;
  /** Whether the value is a text of the environment, which is a number for other libraries. */
  readonly isTextOfEnvironment: boolean;
  /** The function that the value is, if the file shows it. */
  readonly function: FunctionNode | undefined;
  readonly #source: Source;

  constructor(source: Source, property: Property) {
    this.#source = source;
    this.property = property;
    this.value = valueIn(property);
    this.constant = constantOf(this.value);
    this.code = source.text(this.value);
    this.isTextOfEnvironment = source.isTextOfEnvironment(this.value);
    this.function = source.functionOf(this.value);
  }

  /** Writes another option in place of this one. */
  set(code: string): void {
    this.#source.replace(this.property, code);
  }

  /** Gives the option another name. Its value stays. */
  rename(name: string): void {
    const { property } = this;
    if (nameOf(property) === name) return;
    if (property.type === "ObjectProperty" && property.shorthand) this.set(`${name}: ${this.#source.text(property.key)}`);
    else this.#source.replace(property.key, name);
  }

  /** Leaves the option to do by hand. */
  handle(message: string): void {
    this.#source.handle(this.property, message);
  }

  note(message: string): void {
    this.#source.note(this.property, message);
  }
}

/** An object literal of options that is being rewritten. Comments and layout stay. */
export class Options {
  readonly #source: Source;
  readonly #object: ObjectExpression;
  readonly #properties: readonly Property[];
  readonly #removed = new Set<Node>();
  readonly #known = new Set<string>();
  readonly #added: string[] = [];

  constructor(source: Source, object: ObjectExpression) {
    this.#source = source;
    this.#object = object;
    this.#properties = object.properties.filter((property) => property.type !== "SpreadElement");
  }

  /** The option that is given under one of these names. */
  take(...names: string[]): Option | undefined {
    for (const name of names) this.#known.add(name);
    const [given, ...others] = this.#properties.filter((property) => names.includes(nameOf(property) ?? ""));
    for (const other of others) this.#source.handle(other, "This option is given twice. Remove one of them.");
    return given && new Option(this.#source, given);
  }

  remove(...options: readonly (Option | undefined)[]): void {
    for (const option of options) if (option !== undefined) this.#removed.add(option.property);
  }

  add(code: string): void {
    this.#added.push(code);
  }

  /** Writes an option in place of the first one that is given, and removes the others. Adds it if none is given. */
  put(code: string, ...options: readonly (Option | undefined)[]): void {
    const [first, ...others] = options.filter((option) => option !== undefined);
    if (first === undefined) this.add(code);
    else first.set(code);
    this.remove(...others);
  }

  /** Leaves all options to do by hand. */
  handle(message: string): void {
    this.#source.handle(this.#object, message);
  }

  /** Reports the options that were never taken, and functions that read the options by `this`. */
  handleOthers(messageOf: (name: string) => string): void {
    for (const property of this.#properties) {
      const value = valueIn(property);
      if (isFunction(value) && value.type !== "ArrowFunctionExpression" && readsThis(value.body))
        this.#source.handle(property, "Here `this` is not the options. Rewrite what uses it.");
      const name = nameOf(property);
      if (!this.#known.has(name ?? "")) this.#source.handle(property, messageOf(name ?? this.#source.text(property.key)));
    }
  }

  /** Applies the removals and additions. Call it once, when all options are rewritten. */
  finish(): void {
    const { properties } = this.#object;
    if (properties.length > this.#properties.length) this.handle("Options that are spread into this object are not rewritten.");
    const lastKept = properties.reduce((last, property, i) => (this.#removed.has(property) ? last : i), -1);
    const last = properties[lastKept];
    if (last === undefined) {
      this.#source.replace(this.#object, this.#added.length === 0 ? "{}" : `{ ${this.#added.join(", ")} }`);
      return;
    }
    for (const [i, property] of properties.entries()) {
      if (this.#removed.has(property)) this.#drop(property, i > lastKept ? properties[i - 1] : undefined, properties[i + 1]);
    }
    this.#append(last, properties[lastKept - 1] ?? this.#object, properties.at(-1) ?? last);
  }

  /**
   * Removes an option, and the comment on its line. Comments on other lines stay, because they may be about other options.
   * @param before the option before it, if no option that stays comes after it.
   */
  #drop(property: Node, before: Node | undefined, next: Node | undefined): void {
    const source = this.#source;
    const comma = source.commaAfter(end(property)) ?? end(property);
    const lineEnd = source.lineEnd(comma);
    const line = source.lineStart(start(property));
    if (lineEnd !== undefined && source.code.slice(line, start(property)).trim() === "") {
      source.edits.remove(line, source.nextLine(lineEnd));
    } else if (before !== undefined && end(before) >= line) source.edits.remove(end(before), end(property));
    else source.edits.remove(start(property), next === undefined ? comma : start(next));
  }

  /** Writes the additions after the last option that stays. */
  #append(last: Node, before: Node, final: Node): void {
    const source = this.#source;
    const { edits, newline } = source;
    const comma = source.commaAfter(end(last));
    const hasFinalComma = source.commaAfter(end(final)) !== undefined;
    const lineEnd = source.lineEnd(comma ?? end(last));
    const afterComments = source.afterComments(comma ?? end(last));
    const hasComments = afterComments > (comma ?? end(last));
    // What follows a comment at the end of a line begins on the next one.
    const isOneLine =
      !(hasComments && lineEnd !== undefined) && (before === this.#object ? start(before) : end(before)) >= source.lineStart(start(last));
    const separator = isOneLine ? ", " : `,${newline}${source.indentAt(start(last))}`;
    const code = this.#added.map((text) => separator + text).join("");
    if (hasComments && lineEnd === undefined && last === final)
      edits.appendLeft(afterComments, comma === undefined || code === "" ? code : `${code.slice(1)},`);
    else if (isOneLine || lineEnd === undefined) edits.appendLeft(end(last), code);
    else if (this.#added.length > 0) {
      // After the comment of the last option, which stands behind its comma.
      if (comma === undefined) edits.appendLeft(end(last), ",");
      edits.appendLeft(lineEnd, code.slice(1) + (hasFinalComma ? "," : ""));
    } else if (comma !== undefined && !hasFinalComma) edits.remove(comma - 1, comma);
  }
}

export function nameOf(property: Property): string | undefined {
  if (property.computed) return undefined;
  if (property.key.type === "Identifier") return property.key.name;
  return property.key.type === "StringLiteral" ? property.key.value : undefined;
}

/** The value of a property of an object literal. */
export function propertyOf(object: Node | undefined, name: string): Node | undefined {
  const properties = object?.type === "ObjectExpression" ? object.properties : [];
  return properties.flatMap((property) => (property.type !== "SpreadElement" && nameOf(property) === name ? valueIn(property) : []))[0];
}

/** The value of a property; a method is its own value. */
export function valueIn(property: Property): Node {
  return property.type === "ObjectMethod" ? property : bare(property.value);
}
