import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { transform } from "esbuild";

const docs = join(import.meta.dirname, "..", "..", "..", "docs", "migrating");
/** Here, modules find the libraries that this package installs. */
const folder = join(import.meta.dirname, "..", "dist", "pages");

export type Side = "before" | "after";

/** A block of code of a page, under a heading: "ts before" is code with the other library, "ts after" the same with Floodgate. */
export interface Block {
  readonly heading: string;
  readonly info: string;
  readonly text: string;
}

/** A page of docs/migrating. */
export class Page {
  readonly path: string;
  readonly text: string;
  readonly blocks: readonly Block[];

  constructor(name: string) {
    this.path = join(docs, `from-${name}.md`);
    this.text = readFileSync(this.path, "utf8");
    this.blocks = blocksOf(this.text);
  }

  /** The code of an example: a block "ts before" or "js before". JavaScript is not type-checked. */
  code(heading: string, side: Side): Block {
    const found = this.blocks.find((block) => block.heading === heading && [`ts ${side}`, `js ${side}`].includes(block.info));
    if (found === undefined) throw new Error(`${this.path} has no code "${side}" under "${heading}".`);
    return found;
  }

  /** The page with other text in some blocks. */
  with(blocks: readonly Block[]): string {
    let text = this.text;
    for (const { heading, info, text: code } of blocks) {
      const at = text.indexOf(`\n### ${heading}\n`);
      const fence = text.indexOf(`\`\`\`${info}\n`, at) + `\`\`\`${info}\n`.length;
      text = text.slice(0, fence) + code + text.slice(text.indexOf("```", fence));
    }
    return text;
  }
}

/** Runs code as a module. Each call runs a new one. */
export async function load<Exports>(code: string): Promise<Exports> {
  const { code: plain } = await transform(code, {
    loader: "ts",
    format: "esm",
    target: "es2022",
    tsconfigRaw: { compilerOptions: { experimentalDecorators: true } },
  });
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${randomUUID()}.mjs`);
  writeFileSync(path, plain);
  try {
    return await import(/* @vite-ignore */ path);
  } finally {
    rmSync(path);
  }
}

function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  let heading = "";
  let open: { info: string; lines: string[] } | undefined;
  for (const line of text.split("\n")) {
    if (open === undefined) {
      if (line.startsWith("### ")) heading = line.slice(4);
      else if (line.startsWith("```")) open = { info: line.slice(3), lines: [] };
    } else if (line === "```") {
      blocks.push({ heading, info: open.info, text: `${open.lines.join("\n")}\n` });
      open = undefined;
    } else open.lines.push(line);
  }
  return blocks;
}
