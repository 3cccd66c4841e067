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
 * parameters and local variables must not have the names of variables outside: these would be hidden where the body is inlined. Lua that
 * breaks these rules throws.
 */
export class Templates {
  readonly #templates = new Map<string, Template>();
  /** The names outside of all functions, which templates may use. */
  readonly #outside = new Set<string>();

  /** Takes the templates out of a Lua text, and returns the rest of it. @param names other names that its templates may use. */
  take(text: string, names: readonly string[] = []): string {
    for (const name of names) this.#outside.add(name);
    const rest = text.replace(/^local function (\w+)\((.*)\)\n([\s\S]*?)^end\n/gm, (_, name: string, parameters: string, body: string) => {
      this.#templates.set(name, templateOf(name, parameters, body));
      return "";
    });
    for (const [, declared = ""] of rest.matchAll(/^local ([\w, ]+?)(?: =|$)/gm))
      for (const name of namesIn(declared)) this.#outside.add(name);
    return rest;
  }

  /** A template as a function expression, in which all calls are inlined. */
  functionOf(name: string): string {
    const { parameters, body, results } = this.#template(name);
    return `function(${parameters})\n${this.inline(body)}return ${results}\nend`;
  }

  /** Inlines all calls in a Lua text. */
  inline(text: string): string {
    return text.replace(/^.*\n/gm, (line) => {
      const [, indent = "", targets = "", name = "", args = ""] = /^(\s*)(?:([\w, ]+) = )?(\w+)\((.*)\)\n$/.exec(line) ?? [];
      if (this.#templates.has(name)) return `${indent}${this.#call(targets, name, args)}\n`;
      for (const [, called = ""] of line.replace(/--.*/, "").matchAll(/(?<!function )\b(\w+)\(/g)) {
        if (this.#templates.has(called)) throw new Error(`A call of ${called} is not a statement on a line of its own: ${line.trim()}`);
      }
      return line;
    });
  }

  #call(targets: string, name: string, args: string): string {
    const { parameters, body, results } = this.#template(name);
    const declared = targets.replace(/^local /, "");
    const answers = namesIn(declared)
      .map((_, i) => `${name}_${i + 1}`)
      .join(", ");
    const bind = parameters === "" ? "" : `local ${parameters}${args === "" ? "" : ` = ${args}`}`;
    const inlined = `do ${bind}\n${this.inline(body)}`;
    if (answers === "") return `${inlined}end`;
    const declaration = declared === targets ? "" : `${targets} `;
    return `${declaration}do local ${answers}\n${inlined}${answers} = ${results} end ${declared} = ${answers} end`;
  }

  #template(name: string): Template {
    const template = this.#templates.get(name);
    if (template === undefined) throw new Error(`No Lua function is called ${name}.`);
    for (const own of template.locals) {
      if (this.#outside.has(own))
        throw new Error(`${name} has a variable of its own that is called ${own}, which is also a name outside of it.`);
    }
    return template;
  }
}

interface Template {
  readonly parameters: string;
  readonly body: string;
  /** What it returns, if anything. */
  readonly results: string;
  /** The names that it declares. */
  readonly locals: readonly string[];
}

function templateOf(name: string, parameters: string, text: string): Template {
  const [, body = "", results = ""] = /^([\s\S]*?)(?:(?<![^\n]) +return (.*)\n)?$/.exec(text) ?? [];
  if (/\breturn\b/.test(body.replace(/--.*/g, ""))) throw new Error(`${name} returns elsewhere than in its last line.`);
  const declared = [...body.matchAll(/\blocal ([\w, ]+?)(?: =|$)|\bfor (\w+) =/gm)].map(([, locals, counter]) => locals ?? counter ?? "");
  return { parameters, body, results, locals: [parameters, ...declared].flatMap(namesIn) };
}

function namesIn(list: string): string[] {
  return list
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}
