import { fill } from "@floodgate/pages/dom";

/** A row that stays in place, and is updated when its item has changed. */
export interface Row<Item> {
  readonly row: Element;
  update(item: Item): void;
}

/** Puts rows in place one by one, so that focus, selection and scrolling survive an update. */
export function keepRows<Item>(
  parent: Element,
  items: readonly Item[],
  idOf: (item: Item, index: number) => string,
  make: (item: Item) => Row<Item>,
): void {
  const known = rows.get(parent) ?? new Map<string, Row<never>>();
  rows.set(parent, known);
  const wanted = new Set(items.map(idOf));
  for (const [id, { row }] of known) {
    if (wanted.has(id)) continue;
    row.remove();
    known.delete(id);
  }
  let before: Element | null = null;
  for (const [index, item] of items.entries()) {
    const id = idOf(item, index);
    const entry = known.get(id) ?? make(item);
    known.set(id, entry);
    (entry.update as (item: Item) => void)(item);
    const place: Element | null = before === null ? parent.firstElementChild : (before as Element).nextElementSibling;
    if (place !== entry.row) parent.insertBefore(entry.row, place);
    before = entry.row;
  }
}

const rows = new WeakMap<Element, Map<string, Row<never>>>();

/** A row that is drawn anew when its item has changed. */
export function redrawn<Item>(row: Element, draw: (item: Item) => readonly (Node | undefined)[]): Row<Item> {
  let shown = "";
  return {
    row,
    update(item) {
      const text = JSON.stringify(item);
      if (text !== shown) fill(row, ...draw(item));
      shown = text;
    },
  };
}
