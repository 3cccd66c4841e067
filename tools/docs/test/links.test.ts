import { posix } from "node:path";
import { documents } from "@floodgate/docs";
import { describe, expect, it } from "vitest";
import { parseMarkdown } from "../src/markdown.js";
import { deadLinks } from "./links.js";

const all = documents();

it.each(all.map((document) => [document.file, document] as const))(
  "every link of %s leads to a file and a heading that exist",
  (_, document) => {
    expect(deadLinks(document).join("\n")).toBe("");
  },
);

it("docs/index.md leads to every page of docs, directly or by another page", () => {
  const reached = new Set(["docs/index.md"]);
  // A Set's iterator reaches what is added meanwhile.
  for (const page of reached) {
    for (const { href } of all.find(({ file }) => file === page)?.links ?? [])
      reached.add(posix.join(posix.dirname(page), href.replace(/#.*/, "")));
  }
  const pages = all.map(({ file }) => file).filter((file) => file.startsWith("docs/"));
  expect(pages.filter((page) => !reached.has(page))).toEqual([]);
});

describe("a link is reported", () => {
  const faults = (file: string, text: string) => deadLinks(parseMarkdown(file, text));

  it("to a file that does not exist", () => {
    expect(faults("docs/a.md", "# A\n\nSee [b](./no-such-page.md).")).toEqual(["docs/a.md:3: ./no-such-page.md does not exist"]);
  });

  it("to a heading that does not exist", () => {
    expect(faults("docs/a.md", "# A\n\n[b](#b), [c](accuracy.md#c)")).toEqual([
      "docs/a.md:3: #b is not a heading of this page",
      "docs/a.md:3: accuracy.md#c is not a heading of docs/accuracy.md",
    ]);
  });

  it("from a package's README to a file that is not in the tarball", () => {
    expect(faults("packages/core/README.md", "[docs](../../docs/accuracy.md) [source](src/index.ts)")).toEqual([
      expect.stringContaining("packages/core/README.md:1: ../../docs/accuracy.md is not in the tarball"),
    ]);
  });

  it("if it is the name of a document or another file in inline code", () => {
    expect(faults("packages/core/README.md", "`docs/no-such-page.md`, `packages/core/test/none.test.ts`, `packages/<name>/a.ts`")).toEqual([
      "packages/core/README.md:1: docs/no-such-page.md does not exist",
      "packages/core/README.md:1: packages/core/test/none.test.ts does not exist",
    ]);
  });
});
