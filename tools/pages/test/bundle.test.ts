import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../../test/files.js";
import { bundlePage } from "../src/index.js";

const html = `<meta http-equiv="Content-Security-Policy" content="{{policy}}"><style>/* {{styles}} */</style><script>/* {{script}} */</script>`;

const folder = temporaryFolder("page");

function write(files: Readonly<Record<string, string>>): string {
  for (const [name, text] of Object.entries({ "page.html": html, "page.css": "", "main.ts": "", ...files }))
    writeFileSync(join(folder, name), text);
  return folder;
}

it("puts the script and the styles in the page, and allows them by their hashes", async () => {
  const page = await bundlePage(
    write({
      "main.ts": 'import { greet } from "./greet.js"; console.log(greet("you" as string));',
      "greet.ts": "export const greet = (name: string) => `hello `.concat(name); export const unused = 'nobody needs it';",
      "page.css": '@import "./colours.css"; body { margin: 0 }',
      "colours.css": ":root { --red: #f00 }",
    }),
  );
  expect(page).toMatch(
    /content="default-src 'none'; script-src 'sha256-[\w+/]{43}='; style-src 'sha256-[\w+/]{43}='; img-src data:; base-uri 'none'/,
  );
  expect(page).toContain("--red: #f00");
  expect(page).toContain("hello ");
  expect(page).not.toContain("nobody needs it");
  expect(await bundlePage(folder)).toBe(page);
});

it("keeps the licences of libraries", async () => {
  const page = await bundlePage(write({ "main.ts": "/*! @license Somebody, MIT */ console.log(1); // a comment" }));
  expect(page).toContain("@license Somebody, MIT");
  expect(page).not.toContain("a comment");
});

it("lets no text of the code end the element", async () => {
  const page = await bundlePage(write({ "main.ts": 'console.log("</script><b>$&/* {{styles}} */");' }));
  expect(page.split("</script>")).toHaveLength(2);
  expect(page).toContain("$&/* {{styles}} */");
  await expect(bundlePage(write({ "main.ts": 'console.log("<!--");' }))).rejects.toThrow(/main\.ts: the bundle has .*Write it in parts/);
});

it("refuses a page without a place, code that does not compile, and modules of Node", async () => {
  await expect(bundlePage(write({ "page.html": "<script>/* {{script}} */</script>" }))).rejects.toThrow(
    "must have {{policy}} exactly once",
  );
  await expect(bundlePage(write({ "main.ts": "const = 1" }))).rejects.toThrow("main.ts:1:6");
  await expect(bundlePage(write({ "main.ts": 'import "node:fs";' }))).rejects.toThrow("node:fs");
  expect(readFileSync(join(folder, "page.html"), "utf8")).toContain("script");
});
