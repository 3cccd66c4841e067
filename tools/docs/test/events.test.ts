import { documentOf } from "@floodgate/docs";
import { describe, expect, it } from "vitest";
import { allEvents } from "./events.js";
import { plainValue } from "./options.js";

const page = documentOf("docs/events.md");
const events = allEvents();

describe.each(events)("docs/events.md: $type", ({ type, fields }) => {
  it("has its fields and their types in a table", () => {
    const rows = page.rows.filter(({ under }) => under.at(-1) === type);
    const described = rows.map(({ cells: [name = "", is = ""] }) => ({ name: plainValue(name), type: inOrder(plainValue(is)) }));
    expect(described).toEqual(fields.map((field) => ({ name: field.name, type: inOrder(field.type) })));
  });
});

it("docs/events.md has no event that does not exist", () => {
  const headings = page.headings.filter(({ level }) => level === 3).map(({ text }) => text);
  expect(headings.sort()).toEqual(events.map(({ type }) => type).sort());
});

/** The values of a union may be in any order. */
function inOrder(type: string): string {
  return type.split(", ").sort().join(", ");
}
