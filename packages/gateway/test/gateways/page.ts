import { readFileSync } from "node:fs";
import { join } from "node:path";

const folder = join(__dirname, "../../../../docs/gateways");

/** A page of docs/gateways: the configs that readers copy. */
export class Page {
  readonly #name: string;
  readonly #text: string;

  constructor(name: string) {
    this.#name = name;
    this.#text = readFileSync(join(folder, name), "utf8");
  }

  /**
   * The code block whose first line names this file.
   * @throws Error unless there is exactly one.
   */
  config(file: string): string {
    return this.#block(file, (language) => language !== "diff");
  }

  /**
   * A config with the changes that the page shows for it as a diff.
   * @throws Error if a part of the diff is not in the config, or is there twice.
   */
  changed(file: string, config: string): string {
    const [, ...lines] = this.#block(file, (language) => language === "diff").split("\n");
    const hunks = lines.join("\n").split(/^@@$\n?/m);
    return hunks.reduce((text, hunk) => replaceOnce(text, side(hunk, "-"), side(hunk, "+")), config);
  }

  #block(file: string, fits: (language: string) => boolean): string {
    const found = [...this.#text.matchAll(/^```(\w+)\n((?:#|--|\/\/) (.+)\n[\s\S]*?)^```$/gm)].filter(
      ([, language = "", , first]) => fits(language) && first === file,
    );
    if (found.length !== 1) throw new Error(`${this.#name} has ${found.length} fitting code blocks that begin with ${file}.`);
    return (found[0] as RegExpMatchArray)[2] as string;
  }
}

/** Replaces ports and paths: old text to new text. @throws Error if the old text is missing. */
export function replaced(text: string, replacements: Readonly<Record<string, string>>): string {
  return Object.entries(replacements).reduce((result, [from, to]) => {
    if (!result.includes(from)) throw new Error(`The config has no ${from}.`);
    return result.replaceAll(from, to);
  }, text);
}

/** What a hunk says was there (`-`) or is there (`+`). */
function side(hunk: string, sign: "-" | "+"): string {
  const lines = hunk.replace(/\n$/, "").split("\n");
  return lines
    .filter((line) => !/^[-+]/.test(line) || line.startsWith(sign))
    .map((line) => `${line.slice(1)}\n`)
    .join("");
}

function replaceOnce(text: string, from: string, to: string): string {
  const parts = text.split(from);
  if (parts.length !== 2) throw new Error(`The config has ${parts.length - 1} times:\n${from}`);
  return parts.join(to);
}
