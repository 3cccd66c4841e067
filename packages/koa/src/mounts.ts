import type { KoaContext } from "./context.js";

/** The mounts of koa-mount that a request is in. */
interface Place {
  /** From the outermost: all prefixes up to each, and the path before its prefix was removed, which koa-mount restores at the end. */
  readonly mounts: { readonly base: string; readonly outside: string }[];
  /** The last prefix that koa-mount reported. It stays after the request left the mount. */
  readonly prefix: string;
  /** The path that the prefix is about to be removed from. */
  readonly entering: string | undefined;
}

const place: unique symbol = Symbol("floodgate.place");

type Followed = KoaContext & { [place]?: Place };

/** The apps, by the prototype of their contexts: whether a request entered a mount whose path ends in a slash. */
const followed = new WeakMap<object, boolean>();

/**
 * All prefixes that koa-mount has removed from a request's path so far. koa-mount reports only the innermost one, so we follow each app's
 * contexts from the first request on. Undefined if the request entered a mount before that.
 */
export function mountedAt(ctx: Followed): string | undefined {
  const known = ctx[place];
  if (known !== undefined) return known.mounts.at(-1)?.base ?? "";
  const { context } = ctx.app;
  if (context !== undefined && !followed.has(context)) {
    followed.set(context, false);
    if (!Object.hasOwn(context, "path") && !("mountPath" in context)) Object.defineProperties(context, following);
  }
  return typeof ctx["mountPath"] === "string" ? undefined : "";
}

/** Whether a request of this app has entered a mount whose path ends in a slash. */
export const hasSlashMount = ({ app: { context } }: KoaContext): boolean => context !== undefined && followed.get(context) === true;

/** koa-mount sets `ctx.mountPath` and then `ctx.path` when a request enters a mount, and `ctx.path` alone when it leaves. */
const accessors: ThisType<Followed> = {
  get mountPath(): string | undefined {
    return this[place]?.prefix;
  },
  set mountPath(prefix: string) {
    if (prefix.endsWith("/")) followed.set(this.app.context as object, true);
    this[place] = { mounts: this[place]?.mounts ?? [], prefix, entering: this.path };
  },
  get path(): string {
    return this.request["path"];
  },
  set path(path: string) {
    const { mounts = [], prefix = "", entering = undefined } = this[place] ?? {};
    const inner = mounts.at(-1);
    if (entering !== undefined && path === (entering.slice(prefix.length) || "/"))
      mounts.push({ base: (inner?.base ?? "") + prefix, outside: entering });
    else if (path === inner?.outside) mounts.pop();
    if (entering !== undefined) this[place] = { mounts, prefix, entering: undefined };
    this.request["path"] = path;
  },
};
const following = Object.getOwnPropertyDescriptors(accessors);
