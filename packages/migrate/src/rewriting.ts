import type { Node } from "@babel/types";
import type { Import } from "./loads.js";
import { bare, entryOf, isFunction, nameOfHolder, names, walk } from "./nodes.js";
import { type Option, Options } from "./options.js";
import type { Call, Source } from "./source.js";
import { start } from "./source-text.js";
import { nameFrom } from "./write.js";

/** How calls of one middleware become calls of Floodgate's. */
export interface MiddlewareRules {
  /** The module of the library, and those of its stores. */
  readonly modules: readonly string[];
  /** The package of ours. */
  readonly ours: string;
  /** Which exports of a module build a limit, by a call. */
  readonly builders?: Readonly<Record<string, readonly string[]>>;
  /** Finds the places, for a library whose limits are not made by calls alone. */
  find?(source: Source, imports: readonly Import[]): Call[];
  /** Whether a file is rewritten as a whole, or not at all. */
  readonly isWhole?: boolean;
  /** Types that have another name here. */
  readonly types?: Readonly<Record<string, string>>;
  /** Rewrites one call. What it leaves to do by hand keeps the call as it is. */
  rewrite(rewriting: Rewriting, call: Call): void;
  /** Rewrites what the file reads of decisions. */
  rewriteReaders(rewriting: Rewriting): void;
}

/** The state of a file while it is rewritten. */
export class Rewriting {
  readonly source: Source;
  readonly imports: readonly Import[];
  readonly calls: readonly Call[];
  /** Names to import, by package. */
  readonly needed: Map<string, Set<string>> = new Map();
  /** Identifiers that are rewritten, so that their import can go. */
  readonly #done = new Set<Node>();
  /** The names so far, and how many limits wanted each. */
  readonly #names = new Map<string, number>();
  readonly #rules: MiddlewareRules;
  /** The calls that do not stay as they are. */
  readonly rewritten: readonly Call[];

  /** @param left the positions of the calls that stay as they are. */
  constructor(source: Source, rules: MiddlewareRules, left: ReadonlySet<number>) {
    this.source = source;
    this.#rules = rules;
    this.imports = source.imports(rules.modules);
    this.calls =
      rules.find?.(source, this.imports) ??
      source.calls(this.imports, ({ module, exported }) => rules.builders?.[module]?.includes(exported) === true);
    source.handleLoads(this.imports, this.calls);
    this.rewritten = this.calls.filter(({ node }) => !left.has(start(node)));
  }

  /** Reports a call for each request, whose counts would begin anew each time, and one of a name that is not surely the library's. */
  checkPlace({ node, parent, builder }: Call): void {
    const { source } = this;
    if (builder === undefined) return;
    const functions = [...source.around(node)].filter((outer) => isFunction(outer) || outer.type === "FunctionDeclaration");
    const holder = functions.length > 0 && parent?.type === "VariableDeclarator" ? names(parent.id) : [];
    const isCalled = [node, ...holder.flatMap((name) => source.uses(name))].some((use) => {
      const outer = source.parentOf(use);
      return outer?.type === "CallExpression" && outer.callee === use;
    });
    const isPerRequest = isCalled || functions.some(({ params }) => params.flatMap(names).some((word) => /^_?next$/.test(word)));
    // Plugins are registered in functions, once.
    if (isPerRequest && this.#rules.find === undefined)
      source.handle(
        node,
        "This makes a limit for each request, so counts in memory begin anew each time. Make the limit once, outside of the function.",
      );
    const callee = bare(builder.node);
    if (callee.type === "Identifier" && source.declares(callee.name, this.imports)) {
      source.handle(node, `\`${callee.name}\` has several meanings in this file. Rename one of them.`);
    }
  }

  /** Notes that a name must be imported. */
  need(name: string, user: Node, { from = this.#rules.ours, isType = false }: { from?: string; isType?: boolean } = {}): void {
    const [statement] = this.imports;
    if (statement === undefined || start(statement.node) > start(user))
      this.source.handle(user, `\`${name}\` of ${from} is needed here. Load the library in a statement of its own, at the top.`);
    if (this.source.declares(name, []))
      this.source.handle(user, `\`${name}\` of ${from} is needed here, but the file has a \`${name}\`. Rename it.`);
    const needed = this.needed.get(from) ?? new Set();
    this.needed.set(from, needed.add(isType ? `type ${name}` : name));
  }

  /** Writes the store of a client of Redis in place of an option. */
  useRedis(option: Option, client: string): void {
    this.need("redisStore", option.property, { from: "@floodgate/store-redis" });
    option.set(`store: redisStore(${client})`);
  }

  noteName(node: Node): void {
    this.source.note(node, 'Give each limit on one Redis a name of its own, for example name: "api".');
  }

  /** Notes that a part of the file no longer needs the imports that it uses. */
  done(node: Node): void {
    walk(node, (inner) => {
      if (inner.type === "Identifier") this.#done.add(inner);
    });
  }

  isDone(use: Node): boolean {
    return this.#done.has(use);
  }

  /** The options of a call; undefined if they are not written in the file, which is left to do by hand. */
  optionsOf({ node, given }: Call): Options | undefined {
    const { source } = this;
    let object = given && bare(given);
    if (object?.type === "Identifier") {
      const constant = source.constant(object.name);
      if (constant?.value.type === "ObjectExpression" && constant.uses === 1) object = constant.value;
    }
    if (object?.type === "ObjectExpression") return new Options(source, object);
    source.handle(
      given ?? node,
      "The options are not an object literal here, so this call stays as it is. Rewrite it by the table of the page.",
    );
    return undefined;
  }

  /** Reports the options that were never taken, and writes the others. */
  finish(options: Options, whatTo: Readonly<Record<string, string>>): void {
    options.handleOthers((name) => `\`${name}\`: ${entryOf(whatTo, name) ?? "Floodgate has no such option. Remove it, or see the page."}`);
    options.finish();
  }

  /** Limits of one file get names, because the headers of one response may show several. */
  nameAmongSeveral(call: Call, options: Options): void {
    const name = this.calls.length > 1 ? this.nameFor(call, undefined) : "default";
    if (name !== "default") options.add(`name: ${JSON.stringify(name)}`);
  }

  /** A name for a limit: the given one, or that of its variable or route. No two calls get the same. */
  nameFor(call: Call, given: string | undefined): string {
    const { parent } = call;
    const route = parent?.type === "CallExpression" ? parent.arguments[0] : undefined;
    const text = route?.type === "StringLiteral" ? route.value : parent && nameOfHolder(parent);
    const wanted = given ?? (text === undefined ? undefined : nameFrom(text)) ?? "default";
    let name = wanted;
    let times = this.#names.get(wanted) ?? 1;
    while (this.#names.has(name)) name = `${wanted}-${++times}`;
    this.#names.set(wanted, times).set(name, 1);
    return name;
  }
}
