import type { Node } from "@babel/types";
import { bare, entryOf, isMember, propertyName, walk } from "./nodes.js";
import type { Source } from "./source.js";
import { end, start } from "./source-text.js";

// What the rest of an app says: what it reads of decisions, and its settings for a proxy.

/** What decisions of other libraries have, and what to write. */
const reads: Readonly<Record<string, (decision: string) => string>> = {
  resetTime: (decision) => `Write new Date(Date.now() + ${decision}.resetAfterMs).`,
  after: (decision) => `Write Math.ceil(${decision}.retryAfterMs / 1000).`,
  key: () => "A decision has no `key`. Compute it again, or read it from the events of `onEvent`.",
};

/** Rewrites what the file reads of decisions: `req.rateLimit.resetTime`. */
export function rewriteReads(source: Source, isDecision: (node: Node) => boolean): void {
  walk(source.program, (node, parent) => {
    if (!isDecision(node)) return;
    const reader = parent && bare(parent) === node ? source.parentOf(parent) : parent;
    const member = (reader && propertyName(reader)) ?? "";
    const decision = source.text(node);
    const outer = reader && source.parentOf(reader);
    if (
      ["current", "used"].includes(member) &&
      outer?.type === "BinaryExpression" &&
      /[<>=]/.test(outer.operator) &&
      /limit\b/.test(source.text(outer).replaceAll(decision, ""))
    )
      source.handle(
        outer,
        '`used` is never above `limit` here, because a rejected request takes nothing. Write onEvent: (event) => ..., which gets event.type "limited".',
      );
    if (isMember(reader) && member === "current") source.replace(reader.property, "used");
    else if (!["limit", "remaining", "used"].includes(member))
      source.handle(
        node,
        entryOf(reads, member)?.(decision) ?? `${decision} is a decision now: limit, used, remaining, retryAfterMs, resetAfterMs.`,
      );
  });
}

/** Settings with which each client chooses its own address, in Express, Koa and Fastify, and what to write. */
const forgeable: readonly (readonly [setting: RegExp, what: string])[] = [
  [/^[\w.]+\.(enable\(["']trust proxy["']\)|set\(["']trust proxy["'], ?true\))$/, 'app.set("trust proxy", 1)'],
  [/^[\w.]+\.proxy = true$/, "app.maxIpsCount = 1"],
  [/^trustProxy: ?true$/, "trustProxy: (address, hop) => hop < 1"],
];

/** Reports settings for a proxy that Floodgate refuses at the first request. */
export function handleProxies(source: Source): void {
  walk(source.program, (node) => {
    if (end(node) - start(node) > 100) return;
    const [, what] = forgeable.find(([setting]) => setting.test(source.text(node))) ?? [];
    if (what === undefined || source.code.includes("maxIpsCount")) return;
    source.handle(
      node,
      `With this, each client chooses its own address, so Floodgate answers with an error. Say how many proxies you have: ${what}.`,
    );
  });
}
