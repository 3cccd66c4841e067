export type Child = Node | string | number | undefined;

interface Attributes {
  readonly [name: string]: string | number | boolean | undefined;
}

/** Makes an element. Attributes that are `false` or `undefined` are left out. Text stays text: nothing here reads markup. */
export function h<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes?: Attributes,
  ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  return build(document.createElement(name), attributes, children);
}

/** Makes an element of a drawing. */
export function svg<Name extends keyof SVGElementTagNameMap>(
  name: Name,
  attributes?: Attributes,
  ...children: readonly Child[]
): SVGElementTagNameMap[Name] {
  return build(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

export const path = (name: string, d: string): SVGElement => svg("path", { class: name, d });

function build<E extends Element>(element: E, attributes: Attributes | undefined, children: readonly Child[]): E {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  fill(element, ...children);
  return element;
}

export function fill(element: Element, ...children: readonly Child[]): void {
  element.replaceChildren(
    ...children.filter((child) => child !== undefined).map((child) => (child instanceof Node ? child : String(child))),
  );
}

/** Writes text, and leaves the element alone if it says so already: a screen reader repeats what changes. */
export function say(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** A name, key, path or reason that somebody else chose: isolated, so that a mark that turns the direction of text turns nothing around it. */
export function foreign(text: string, className = ""): HTMLElement {
  return h("bdi", { class: `foreign ${className}`.trim() }, visible(text));
}

/** Shows characters that one cannot see (controls, marks of direction, zero-width ones) as their code points, and cuts what is very long. */
export function visible(text: string, longest = 300): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}… (${count(text.length)} characters)` : text;
  return cut.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|\p{Surrogate}/gu,
    (c) => `⟨${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );
}

const whole = new Intl.NumberFormat("en");

/** A whole number with its thousands apart. */
export const count = (value: number): string => whole.format(value);
