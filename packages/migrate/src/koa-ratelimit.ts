import { isMemberOf, messageCode, rewriteKeyFunction, rewriteLimit, rewriteSkip } from "./middleware.js";
import { constantOf, isFunction, propertyName, walk } from "./nodes.js";
import type { Options, Property } from "./options.js";
import { type MiddlewareRules, type Rewriting, valueIn } from "./rewriting.js";
import type { Call, Source } from "./source.js";

export const rules: MiddlewareRules = {
  modules: ["koa-ratelimit"],
  ours: "@floodgate/koa",
  builders: ["default"],
  rewrite,
  rewriteReaders,
};

const whatTo: Readonly<Record<string, string>> = {
  blacklist: "Reject such clients before the limit: app.use((ctx, next) => (isBlocked(ctx) ? ctx.throw(403) : next())).",
};

function rewrite(rewriting: Rewriting, call: Call): void {
  const { source } = rewriting;
  const options = rewriting.optionsOf(call);
  if (options === undefined) return;
  const isInMemory = rewriteStore(rewriting, call, options);
  rewriteLimit(rewriting, options, { limit: options.take("max"), window: options.take("duration") }, { limit: 2500, windowMs: 3_600_000 });
  rewriteId(rewriting, options);
  rewriteSkip(source, options, options.take("whitelist"), "ctx");
  rewriteAnswer(rewriting, options);
  if (isInMemory) rewriting.nameAmongSeveral(call, options);
  rewriteHeaders(rewriting, options);
  rewriting.finish(options, whatTo);
}

/** `driver`, `db` and `namespace` become `store` and `name`. @returns whether counts are kept in memory. */
function rewriteStore(rewriting: Rewriting, call: Call, options: Options): boolean {
  const { source } = rewriting;
  const driver = options.take("driver");
  const db = options.take("db");
  const namespace = options.take("namespace");
  const kind = driver === undefined ? "redis" : constantOf(valueIn(driver));
  if (kind === "memory") {
    const map = db && valueIn(db);
    if (map?.type === "Identifier") source.note(map, `The limit does not need \`${map.name}\` any more. Remove it if nothing else does.`);
    for (const property of [driver, db, namespace]) options.remove(property);
    return true;
  }
  if (kind !== "redis" || db === undefined) {
    source.handle(driver ?? db ?? call.node, "Write `store: redisStore(client)`, or no store for counts in memory.");
    return false;
  }
  const given = namespace === undefined ? undefined : constantOf(valueIn(namespace));
  if (namespace !== undefined && typeof given !== "string") source.handle(namespace, 'Write `name: "api"`.');
  else {
    const name = rewriting.nameFor(call, typeof given === "string" ? given : undefined);
    if (namespace !== undefined) options.set(namespace, `name: ${JSON.stringify(name)}`);
    else if (name === "default") source.note(call.node, 'Give each limit on one Redis a name of its own, for example name: "api".');
    else options.add(`name: ${JSON.stringify(name)}`);
  }
  rewriting.need("redisStore", db, "@floodgate/store-redis");
  options.remove(driver);
  options.set(db, `store: redisStore(${source.text(valueIn(db))})`);
  options.add('onStoreError: "deny"');
  return false;
}

function rewriteId(rewriting: Rewriting, options: Options): void {
  const { source } = rewriting;
  const id = options.take("id");
  rewriteKeyFunction(rewriting, options, id, "ctx", (node, ctx) => propertyName(node) === "ip" && isMemberOf(node, ctx));
  const value = id && source.functionOf(valueIn(id));
  if (id === undefined || value === undefined) return;
  walk(value.body, (node) => {
    if (node.type !== "BooleanLiteral" || node.value) return;
    source.handle(node, '`false` is a key here. To skip a request, return undefined and write `onMissingKey: "skip"`.');
  });
}

/** `errorMessage`, `status` and `throw` become `body` or `onLimited`. */
function rewriteAnswer({ source }: Rewriting, options: Options): void {
  const message = options.take("errorMessage");
  const status = options.take("status");
  const thrown = options.take("throw");
  const onLimited = options.take("onLimited");
  const throws = thrown !== undefined && constantOf(valueIn(thrown)) !== false;
  const code = status === undefined ? 429 : constantOf(valueIn(status));
  if (!throws && code === 429 && onLimited === undefined && (message === undefined || messageCode(source, message) !== undefined)) {
    if (message !== undefined) options.rename(message, "body");
    options.remove(status);
    options.remove(thrown);
    return;
  }
  const text = message === undefined ? '"Too many requests"' : messageCode(source, message);
  const first = thrown ?? status;
  if (onLimited !== undefined || first === undefined || text === undefined || (throws && constantOf(valueIn(thrown)) !== true)) {
    source.handle(
      onLimited ?? thrown ?? message ?? options.object,
      "Write one `onLimited: (ctx, decision) => ...` that sets `ctx.status` and `ctx.body`, or throws.",
    );
    return;
  }
  const number = typeof code === "number" ? `${code}` : source.text(valueIn(status ?? first));
  const answer = throws ? `ctx.throw(${number}, ${text})` : blockCode(source, first, [`ctx.status = ${number};`, `ctx.body = ${text};`]);
  options.set(first, `onLimited: (ctx) => ${answer}`);
  for (const property of [message, status, thrown]) if (property !== first) options.remove(property);
}

/** A block of statements: on lines of their own, if the option has its own line. */
function blockCode(source: Source, { loc, start }: Property, statements: readonly string[]): string {
  const column = loc?.start.column ?? 0;
  const indent = source.code.slice((start ?? 0) - column, start ?? 0);
  if (indent.trim() !== "") return `{ ${statements.join(" ")} }`;
  return `{\n${statements.map((statement) => `${indent}  ${statement}\n`).join("")}${indent}}`;
}

function rewriteHeaders({ source }: Rewriting, options: Options): void {
  const disable = options.take("disableHeader");
  const names = options.take("headers");
  const isOff = disable === undefined ? false : constantOf(valueIn(disable));
  if (typeof isOff !== "boolean") source.handle(disable ?? options.object, 'Write `headers: false` or `headers: "legacy"`.');
  const own = names && !isOff && !/X-RateLimit-Remaining/i.test(source.text(names)) ? names : undefined;
  if (own) source.note(own, "Clients get X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset: header names are fixed.");
  const code = `headers: ${isOff ? "false" : '"legacy"'}`;
  const first = disable ?? names;
  if (first === undefined) options.add(code);
  else options.set(first, code);
  if (first !== names) options.remove(names);
}

/** What later middleware reads of a rejection: `ctx.state.rateLimit.after`. */
function rewriteReaders({ source }: Rewriting): void {
  walk(source.program, (node) => {
    if (node.type !== "MemberExpression" && node.type !== "OptionalMemberExpression") return;
    if (isFunction(node.object) || propertyName(node.object) !== "rateLimit") return;
    const member = propertyName(node);
    const holder = source.text(node.object);
    if (member === "after") source.handle(node, `Write Math.ceil(${holder}.retryAfterMs / 1000).`);
    else if (member === "id" || member === "message" || member === "headers") {
      source.handle(node, `A decision has no \`${member}\`. It has \`limit\`, \`remaining\`, \`retryAfterMs\` and \`resetAfterMs\`.`);
    }
  });
}
