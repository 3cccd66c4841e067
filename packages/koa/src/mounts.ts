/** The mounts of koa-mount that a request is in. */
interface Place {
  /** From the outermost: all prefixes up to each, and the path before its prefix was removed, which koa-mount restores at the end. */
  readonly mounts: { readonly base: string; readonly outside: string }[];
  /** The last prefix that koa-mount reported. It stays after the request left the mount. */
  prefix: string;
  /** The path that the prefix is about to be removed from. */
  entering: string | undefined;
}

const place: unique symbol = Symbol("floodgate.place");

/** What koa-mount and routers change of a context. */
interface FollowedContext {
  readonly app: { readonly context?: object };
  readonly request: { [name: string]: unknown };
  path: string;
  readonly mountPath?: string;
  [place]?: Place;
}

const followed = new WeakSet<object>();
/** The apps, by the prototype of their contexts, in which a request entered a mount whose path ends in a slash. */
const withSlashMounts = new WeakSet<object>();

/**
 * All prefixes that koa-mount has removed from a request's path so far. koa-mount reports only the innermost one, so we follow each app's
 * contexts from the first request on. Undefined if the request entered a mount before that.
 */
export function mountedAt(ctx: FollowedContext): string | undefined {
  const known = ctx[place];
  if (known !== undefined) return known.mounts.at(-1)?.base ?? "";
  const { context } = ctx.app;
  if (context !== undefined && !followed.has(context)) {
    followed.add(context);
    if (!Object.hasOwn(context, "path") && !("mountPath" in context)) follow(context);
  }
  return typeof ctx.mountPath === "string" ? undefined : "";
}

/** Whether a request of this app has entered a mount whose path ends in a slash. */
export function hasSlashMount({ app: { context } }: FollowedContext): boolean {
  return context !== undefined && withSlashMounts.has(context);
}

/** koa-mount sets `ctx.mountPath` and then `ctx.path` when a request enters a mount, and `ctx.path` alone when it leaves. */
function follow(context: object): void {
  Object.defineProperties(context, {
    mountPath: {
      configurable: true,
      get(this: FollowedContext) {
        return this[place]?.prefix;
      },
      set(this: FollowedContext, prefix: string) {
        if (prefix.endsWith("/")) withSlashMounts.add(context);
        this[place] = { mounts: this[place]?.mounts ?? [], prefix, entering: this.path };
      },
    },
    path: {
      configurable: true,
      get(this: FollowedContext) {
        return this.request["path"];
      },
      set(this: FollowedContext, path: string) {
        const at = this[place];
        if (at !== undefined) move(at, path);
        this.request["path"] = path;
      },
    },
  });
}

function move(at: Place, path: string): void {
  const { entering, prefix, mounts } = at;
  const innermost = mounts.at(-1);
  at.entering = undefined;
  if (entering !== undefined && path === (entering.slice(prefix.length) || "/")) {
    mounts.push({ base: (innermost?.base ?? "") + prefix, outside: entering });
  } else if (path === innermost?.outside) mounts.pop();
}
