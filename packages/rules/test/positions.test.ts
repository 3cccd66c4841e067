import fc from "fast-check";
import { expect, test } from "vitest";
import { runs } from "../../../test/runs.js";
import { type Path, readYaml } from "../src/index.js";

/** A value as a person may write it: `style` picks what differs. */
interface Written {
  readonly value: unknown;
  readonly style: number;
  readonly items?: readonly (readonly [key: string, item: Written])[];
}

const word = fc.oneof(
  fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/),
  fc.constantFrom("é", "😀 b", "a: b", "# no", "- x", "null", "1", "", "it's", 'a "b"', "x\ty"),
);
const scalar = fc.oneof(word, fc.integer(), fc.constantFrom(0.5, 1e21, -0.25), fc.boolean(), fc.constant(null));
const { node } = fc.letrec<{ node: Written }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    fc.record({ value: scalar, style: fc.nat(999) }),
    fc
      .tuple(fc.uniqueArray(fc.tuple(word, tie("node")), { selector: ([key]) => key, maxLength: 4 }), fc.nat(999))
      .map(([items, style]) => ({
        value: Object.fromEntries(items.map(([key, { value }]) => [key, value])),
        style,
        items,
      })),
    fc.tuple(fc.array(tie("node"), { maxLength: 4 }), fc.nat(999)).map(([items, style]) => ({
      value: items.map(({ value }) => value),
      style,
      items: items.map((item, i) => [`${i}`, item] as const),
    })),
  ),
}));

/** What stands in brackets is indented more than what they stand in. */
const deep = " ".repeat(40);

/** Writes YAML, and notes where each value and key begins. */
class Writer {
  text = "";
  readonly positions = new Map<string, { key?: string; value?: string }>();

  note(path: Path, what: "key" | "value"): void {
    const lines = this.text.split("\n");
    const id = JSON.stringify(path);
    this.positions.set(id, { ...this.positions.get(id), [what]: `${lines.length}:${(lines.at(-1) as string).length + 1}` });
  }

  /** In brackets. */
  flow({ value, style, items }: Written, path: Path): void {
    this.note(path, "value");
    if (items === undefined) {
      this.text += written(value, style);
      return;
    }
    const isList = Array.isArray(value);
    const space = ["", " ", `\n${deep}`, ` # why\n ${deep}`][style % 4] as string;
    this.text += isList ? "[" : "{";
    items.forEach(([key, item], i) => {
      this.text += i === 0 ? space : `,${space || " "}`;
      const at = [...path, isList ? i : key];
      if (!isList) {
        this.note(at, "key");
        this.text += `${written(key, item.style)}: `;
      } else this.noteItem(at);
      this.flow(item, at);
    });
    this.text += `${space}${isList ? "]" : "}"}`;
  }

  /** Below each other. `indent` is that of this node. */
  block(given: Written, path: Path, indent: string): void {
    const { value, style, items } = given;
    if (items === undefined || items.length === 0 || style % 5 === 0) {
      this.text += " ";
      this.flow(given, path);
      return;
    }
    const isList = Array.isArray(value);
    items.forEach(([key, item], i) => {
      if (this.text !== "") this.text += style % 3 === 0 ? ` # a comment\n\n${indent}` : `\n${indent}`;
      if (i === 0) this.note(path, "value");
      const at = [...path, isList ? i : key];
      if (isList) this.text += "-";
      else {
        this.note(at, "key");
        this.text += `${written(key, item.style)}:`;
      }
      this.block(item, at, `${indent}${" ".repeat(1 + (item.style % 3))}`);
      if (isList) this.noteItem(at);
    });
  }

  /** The key of an item is the item. */
  noteItem(path: Path): void {
    const id = JSON.stringify(path);
    const { value } = this.positions.get(id) ?? {};
    if (value !== undefined) this.positions.set(id, { key: value, value });
  }
}

function written(value: unknown, style: number): string {
  if (typeof value !== "string") return JSON.stringify(value);
  const isPlain = /^[a-z][a-z0-9]*$|^é$/.test(value) && !["null", "true", "false"].includes(value);
  if (isPlain && style % 2 === 0) return value;
  return style % 3 === 0 && !value.includes("\t") ? `'${value.replaceAll("'", "''")}'` : JSON.stringify(value);
}

test("the value and the position of each part of a text are those at which it was written", () => {
  fc.assert(
    fc.property(node, fc.boolean(), fc.boolean(), (given, isBlock, hasCarriageReturns) => {
      const writer = new Writer();
      if (isBlock) writer.block(given, [], "");
      else writer.flow(given, []);
      const text = hasCarriageReturns ? writer.text.replaceAll("\n", "\r\n") : writer.text;
      const { value, problems, problemAt, problemAtKey } = readYaml(text);
      expect(problems, text).toEqual([]);
      expect(value, text).toEqual(given.value);
      for (const [id, positions] of writer.positions) {
        const path = JSON.parse(id) as Path;
        const found = problemAt(path, "m");
        expect(`${id} ${found.line}:${found.column}`, text).toBe(`${id} ${positions.value}`);
        expect(problemAt([...path, "none", 3], "m"), text).toMatchObject({ line: found.line, column: found.column });
        const key = problemAtKey(path, "m");
        expect(`${id} ${key.line}:${key.column}`, text).toBe(`${id} ${positions.key ?? positions.value}`);
      }
    }),
    runs(1000),
  );
});
