import { messageCode } from "./answer.js";
import { rewriteReads } from "./app-code.js";
import { isIpOf, rewriteKeyFunction, rewriteLimit, rewriteSkip } from "./middleware.js";
import { isMember, propertyName, walk } from "./nodes.js";
import type { Option, Options } from "./options.js";
import type { MiddlewareRules, Rewriting } from "./rewriting.js";
import type { Call, Source } from "./source.js";
import { start } from "./source-text.js";

export const rules: MiddlewareRules = {
  modules: ["koa-ratelimit"],
  ours: "@floodgate/koa",
  builders: { "koa-ratelimit": ["default"] },
  rewrite,
  rewriteReaders,
};

const whatTo: Readonly<Record<string, string>> = {
  blacklist: "Reject such clients before the limit: app.use((ctx, next) => (isBlocked(ctx) ? ctx.throw(403) : next())).",
};

function rewrite(rewriting: Rewriting, call: Call): void {
  const options = rewriting.optionsOf(call);
  if (options === undefined) return;
  const isInMemory = rewriteStore(rewriting, call, options);
  rewriteLimit(rewriting, options, { limit: options.take("max"), window: options.take("duration") }, { limit: 2500, windowMs: 3_600_000 });
  rewriteId(rewriting, options);
  rewriteSkip(rewriting, options.take("whitelist"), "ctx");
  rewriteAnswer(rewriting, options);
  if (isInMemory) rewriting.nameAmongSeveral(call, options);
  rewriteHeaders(rewriting, options);
  rewriting.finish(options, whatTo);
}

/** `driver`, `db` and `namespace` become `store` and `name`. @returns whether counts are kept in memory. */
function rewriteStore(rewriting: Rewriting, call: Call, options: Options): boolean {
  const { source } = rewriting;
  const [driver, db, namespace] = ["driver", "db", "namespace"].map((name) => options.take(name));
  const kind = driver === undefined ? "redis" : driver.constant;
  if (kind === "memory") {
    const map = db?.value;
    if (map?.type === "Identifier") source.note(map, `The limit does not need \`${map.name}\` any more. Remove it if nothing else does.`);
    options.remove(driver, db, namespace);
    return true;
  }
  if (kind !== "redis" || db === undefined) {
    source.handle((driver ?? db)?.property ?? call.node, "Write `store: redisStore(client)`, or no store for counts in memory.");
    return false;
  }
  const given = namespace?.constant;
  if (namespace !== undefined && typeof given !== "string") namespace.handle('Write `name: "api"`.');
  else {
    const name = rewriting.nameFor(call, typeof given === "string" ? given : undefined);
    if (namespace !== undefined || name !== "default") options.put(`name: ${JSON.stringify(name)}`, namespace);
    else rewriting.noteName(call.node);
  }
  rewriting.useRedis(db, db.code);
  options.remove(driver);
  options.add('onStoreError: "deny"');
  return false;
}

function rewriteId(rewriting: Rewriting, options: Options): void {
  const id = options.take("id");
  rewriteKeyFunction(rewriting, options, id, isIpOf);
  if (id?.function === undefined) return;
  walk(id.function.body, (node) => {
    if (node.type !== "BooleanLiteral" || node.value) return;
    rewriting.source.handle(node, '`false` is a key here. To skip a request, return undefined and write `onMissingKey: "skip"`.');
  });
}

/** `errorMessage`, `status` and `throw` become `body` or `onLimited`. */
function rewriteAnswer({ source }: Rewriting, options: Options): void {
  const [message, status, thrown, onLimited] = ["errorMessage", "status", "throw", "onLimited"].map((name) => options.take(name));
  const throws = thrown !== undefined && thrown.constant !== false;
  const code = status === undefined ? 429 : status.constant;
  const text = message === undefined ? '"Too many requests"' : messageCode(message);
  if (!throws && code === 429 && onLimited === undefined && text !== undefined) {
    message?.rename("body");
    options.remove(status, thrown);
    return;
  }
  const first = thrown ?? status;
  if (onLimited !== undefined || first === undefined || text === undefined || (throws && thrown.constant !== true)) {
    (onLimited ?? thrown ?? message ?? options).handle(
      "Write one `onLimited: (ctx, decision) => ...` that sets `ctx.status` and `ctx.body`, or throws.",
    );
    return;
  }
  const number = status === undefined ? "429" : status.code;
  const answer = throws ? `ctx.throw(${number}, ${text})` : blockCode(source, first, [`ctx.status = ${number};`, `ctx.body = ${text};`]);
  options.put(`onLimited: (ctx) => ${answer}`, thrown, status, message);
}

/** A block of statements: on lines of their own, if the option has its own line. */
function blockCode(source: Source, { property }: Option, statements: readonly string[]): string {
  const indent = source.indentAt(start(property));
  if (source.lineStart(start(property)) + indent.length < start(property)) return `{ ${statements.join(" ")} }`;
  return ["{", ...statements.map((statement) => `${indent}  ${statement}`), `${indent}}`].join(source.newline);
}

function rewriteHeaders({ source }: Rewriting, options: Options): void {
  const [disable, names] = [options.take("disableHeader"), options.take("headers")];
  const isOff = disable === undefined ? false : disable.constant;
  if (typeof isOff !== "boolean") disable?.handle('Write `headers: false` or `headers: "legacy"`.');
  if (names !== undefined && !isOff && !/X-RateLimit-Remaining/i.test(source.text(names.property)))
    names.note("Clients get X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset: header names are fixed.");
  options.put(`headers: ${isOff ? "false" : '"legacy"'}`, disable, names);
}

/** What later middleware reads: `ctx.state.rateLimit`. */
function rewriteReaders({ source }: Rewriting): void {
  rewriteReads(source, (node) => isMember(node) && propertyName(node) === "rateLimit" && propertyName(node.object) === "state");
}
