import type { Node } from "@babel/types";
import type { Import } from "./loads.js";
import { bothNeeded, rewriteLimit } from "./middleware.js";
import { argument, bare, entryOf, isFunction, propertyName } from "./nodes.js";
import { nameOf, type Options, propertyOf } from "./options.js";
import type { MiddlewareRules, Rewriting } from "./rewriting.js";
import type { Call, Source } from "./source.js";
import { end, isInside, start } from "./source-text.js";

export const rules: MiddlewareRules = {
  modules: ["@nestjs/throttler"],
  ours: "@floodgate/nestjs",
  // A guard of one library does not see the decorators of another.
  isWhole: true,
  find,
  rewrite,
  rewriteReaders: () => {},
};

/** The exports that have another name here. */
const renamed: Readonly<Record<string, string>> = {
  ThrottlerModule: "FloodgateModule",
  ThrottlerGuard: "FloodgateGuard",
  Throttle: "RateLimit",
  SkipThrottle: "SkipRateLimit",
  ThrottlerModuleOptions: "FloodgateModuleOptions",
};

const duration = 'Write a duration with its unit: window: "1m".';

const whatToExport: Readonly<Record<string, string>> = {
  ThrottlerException: "Write `RateLimitException`, which filters see in its place.",
  ThrottlerStorage: "Write a store of your own by docs/writing-a-store.md.",
  ...Object.fromEntries(["seconds", "minutes", "hours", "days", "weeks"].map((unit) => [unit, duration])),
};

const whatTo: Readonly<Record<string, string>> = {
  ttl: 'Write `window: "30s"`. In this form `ttl` counted seconds.',
  blockDuration: 'Write `ban: { after: 1, within: "1m", for: "10m" }`.',
  skipIf: "Write `skip: (context) => ...`.",
  ignoreUserAgents: "Write `skip: (context) => ...`, which reads the header `user-agent`.",
  getTracker: "Write `key: (context) => ...`.",
  generateKey: 'Write `key: ["ip", "route"]`, or `key: (context) => ...`. A count belongs to a name and a key.',
  storage: "Write `store: redisStore(client)`.",
  errorMessage: "Write `body`, or `onLimited`, which throws an exception of the app.",
  setHeaders: "Write `headers: false`.",
};

/** Each use of what the file imports: with the call, if it is called. */
function find(source: Source, imports: readonly Import[]): Call[] {
  const uses = imports.flatMap(({ node, bindings }) =>
    bindings.flatMap(({ local }) => source.uses(local).filter((use) => !isInside(use, node))),
  );
  const calls = uses.map((use): Call => {
    const member = source.parentOf(use);
    const callee = member?.type === "MemberExpression" && member.object === use ? member : use;
    const parent = source.parentOf(callee);
    if (parent?.type === "CallExpression" && parent.callee === callee)
      return { node: parent, parent: source.parentOf(parent), given: argument(parent, 0) };
    return { node: use, parent: member, given: undefined };
  });
  return calls.sort((a, b) => start(a.node) - start(b.node));
}

function rewrite(rewriting: Rewriting, call: Call): void {
  const { source } = rewriting;
  const { node } = call;
  const callee = node.type === "CallExpression" ? bare(node.callee) : node;
  const used = callee.type === "MemberExpression" ? bare(callee.object) : callee;
  const exported = source.exported(used, rewriting.imports)?.exported ?? "";
  const ours = entryOf(renamed, exported);
  if (ours === undefined || used.type !== "Identifier") {
    source.handle(node, entryOf(whatToExport, exported) ?? `\`${source.text(used)}\` has no equal by this name. See the page.`);
    return;
  }
  const outer = call.parent?.type;
  if (source.declares(used.name, rewriting.imports))
    source.handle(node, `\`${used.name}\` has several meanings in this file. Rename one of them.`);
  if (outer === "ClassDeclaration" || outer === "ClassExpression")
    source.handle(node, "Write `key`, `skip` and `onLimited` of FloodgateModule in place of methods of the guard.");
  rewriting.need(ours, used, { isType: exported === "ThrottlerModuleOptions" });
  rewriting.done(used);
  source.replace(used, ours);
  if (exported === "ThrottlerModule") rewriteModule(rewriting, call, propertyName(callee));
  else if (exported === "Throttle") rewriteThrottle(rewriting, call);
  else if (exported === "SkipThrottle") rewriteSkipThrottle(source, call);
}

/** `forRoot([{ limit, ttl }])`, or `forRootAsync` with a function that returns the same. Each handler counts apart there. */
function rewriteModule(rewriting: Rewriting, module: Call, method: string | undefined): void {
  const { source } = rewriting;
  if (method === undefined) return;
  const given = method === "forRoot" ? module.given : factoryResult(module.given);
  if (given === undefined) {
    source.handle(module.node, 'Write FloodgateModule.forRootAsync({ inject, useFactory: () => ({ limit: 100, window: "1m" }) }).');
    return;
  }
  const call = { ...module, given };
  let list: Node | undefined = bare(given);
  if (list.type === "ObjectExpression") {
    const outer = rewriting.optionsOf({ ...call, given: list });
    const throttlers = outer?.take("throttlers");
    outer?.handleOthers((name) => `\`${name}\`: ${entryOf(whatTo, name) ?? "See the page."}`);
    list = throttlers?.value;
  }
  const [first, ...others] = list?.type === "ArrayExpression" ? list.elements : [];
  if (first?.type !== "ObjectExpression" || others.length > 0) {
    source.handle(
      call.node,
      "Write the options of one limit: { limit, window }. For several, write `rules: [{ name, limit, window }, ...]`.",
    );
    return;
  }
  const options = unwrapped(rewriting, call, first);
  if (options === undefined) return;
  // The body of an arrow function, which an object's braces would open.
  if (source.parentOf(given)?.type === "ArrowFunctionExpression" && given.extra?.["parenthesized"] !== true) {
    source.edits.appendRight(start(first), "(");
    source.edits.appendLeft(end(first), ")");
  }
  const [name, headers] = [options.take("name"), options.take("setHeaders")];
  if (name !== undefined && name.constant !== "default") name.handle("Without `name`, the decorators mean this limit.");
  options.remove(name, headers);
  options.add('key: ["ip", "route"]');
  options.add(`headers: ${headers === undefined || headers.constant === true ? '"legacy"' : "false"}`);
  rewriting.finish(options, whatTo);
}

/** What `useFactory` returns, if it only returns. */
function factoryResult(given: Node | undefined): Node | undefined {
  const value = propertyOf(given, "useFactory");
  if (value === undefined || !isFunction(value)) return undefined;
  if (value.body.type !== "BlockStatement") return value.body;
  const [last, ...others] = value.body.body;
  return last?.type === "ReturnStatement" && others.length === 0 ? (last.argument ?? undefined) : undefined;
}

/** `@Throttle({ default: { limit, ttl } })`. What is left out is as in the module. */
function rewriteThrottle(rewriting: Rewriting, call: Call): void {
  const given = call.given && bare(call.given);
  const [property, ...others] = given?.type === "ObjectExpression" ? given.properties : [];
  const inner = property?.type === "ObjectProperty" && nameOf(property) === "default" ? bare(property.value) : undefined;
  if (inner?.type !== "ObjectExpression" || others.length > 0) {
    rewriting.source.handle(call.node, "Write @RateLimit({ limit, window }), or @RateLimit({ rules }) for several limits.");
    return;
  }
  const options = unwrapped(rewriting, call, inner);
  if (options !== undefined) rewriting.finish(options, whatTo);
}

function rewriteSkipThrottle(source: Source, { node, given }: Call): void {
  if (given === undefined) return;
  const text = source.text(given).replace(/\s/g, "");
  if (text === "{default:true}" || text === "{default:false}") source.replace(given, text === "{default:true}" ? "" : "false");
  else
    source.handle(
      node,
      "Write @SkipRateLimit(), or @SkipRateLimit(false) to limit again. For one limit of several, write `skip` in its rule.",
    );
}

/** The options of a limit, without the list or the name around them, with `limit` and `window`. */
function unwrapped(rewriting: Rewriting, call: Call, inner: Node): Options | undefined {
  const { source } = rewriting;
  const options = rewriting.optionsOf({ ...call, given: inner });
  if (options === undefined || call.given === undefined) return undefined;
  source.unwrap(call.given, inner);
  const [limit, window] = [options.take("limit"), options.take("ttl")];
  if (limit?.function !== undefined || window?.function !== undefined)
    source.handle(inner, "Functions are `plan` and `plans`, or `policy: (context) => slidingWindowCounter({ limit, window })`.");
  else rewriteLimit(rewriting, options, { limit, window }, undefined);
  if ((limit === undefined) !== (window === undefined)) (limit ?? window)?.handle(bothNeeded);
  return options;
}
