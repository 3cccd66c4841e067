/**
 * Lua functions that are inlined. A closure costs the server about as much as a command, and a script creates its closures anew each time it
 * runs. So the functions of the twins and of lua/values.lua, lua/debts.lua and lua/shared-bucket.lua are templates: wherever a script
 * calls one, its body stands in the script instead.
 *
 *     local function half_of(n)              local a
 *       local half = floor(n / 2)            do
 *       return half                            local half_of_1
 *     end                               =>     do local n = x + 1
 *                                                local half = floor(n / 2)
 *     local a = half_of(x + 1)                 half_of_1 = half end
 *                                              a = half_of_1
 *                                            end
 *
 * A template is an ordinary Lua function that begins at the start of a line. Its only `return`, if it has one, is its last line. A call is a
 * statement on a line of its own: `f(x)`, `a, b = f(x)` or `local a, b = f(x)`. Templates may call each other, but not themselves. Their
 * parameters and local variables must not have the names of variables outside: these would be hidden where the body is inlined.
 * test/templates.test.ts checks these rules.
 */
export class Templates {
  readonly #templates = new Map<string, Template>();

  /** Takes the templates out of a Lua text, and returns the rest of it. */
  take(text: string): string {
    return text.replace(/^local function (\w+)\((.*)\)\n([\s\S]*?)^end\n/gm, (_, name: string, parameters: string, lines: string) => {
      const [, body = "", results = ""] = /^([\s\S]*?)(?:(?<![^\n]) +return (.*)\n)?$/.exec(lines) ?? [];
      this.#templates.set(name, { parameters, body, results });
      return "";
    });
  }

  /** A template as a function expression, in which all calls are inlined. */
  functionOf(name: string): string {
    const { parameters, body, results } = this.#templates.get(name) as Template;
    return `function(${parameters})\n${this.inline(body)}return ${results}\nend`;
  }

  /** Inlines all calls in a Lua text. */
  inline(text: string): string {
    return text.replace(/^.*\n/gm, (line) => {
      const [, indent = "", targets = "", name = "", args = ""] = /^(\s*)(?:([\w, ]+) = )?(\w+)\((.*)\)\n$/.exec(line) ?? [];
      return this.#templates.has(name) ? `${indent}${this.#call(targets, name, args)}\n` : line;
    });
  }

  #call(targets: string, name: string, args: string): string {
    const { parameters, body, results } = this.#templates.get(name) as Template;
    const declared = targets.replace(/^local /, "");
    const answers = declared && Array.from(declared.split(","), (_, i) => `${name}_${i + 1}`).join(", ");
    const bind = parameters === "" ? "" : `local ${parameters}${args === "" ? "" : ` = ${args}`}`;
    const inlined = `do ${bind}\n${this.inline(body)}`;
    if (answers === "") return `${inlined}end`;
    const declaration = declared === targets ? "" : `${targets} `;
    return `${declaration}do local ${answers}\n${inlined}${answers} = ${results} end ${declared} = ${answers} end`;
  }
}

interface Template {
  readonly parameters: string;
  readonly body: string;
  /** What it returns, if anything. */
  readonly results: string;
}
