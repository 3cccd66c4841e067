import { FloodgateError } from "@floodgate/core";
import { decisionOf } from "@floodgate/core/adapter";

/** What is known of a prototype that an app gives its requests. */
interface Prototype {
  /** Where Express has put `req.ip`, and decisions are shown beside it. */
  readonly owner: object;
  /** Whether `req.ip` is Express's own: an app may define another. */
  readonly hasOwnIp: boolean;
  /** The names under which decisions are shown there. */
  readonly names: Set<string>;
}

const prototypes = new WeakMap<object, Prototype>();
/** By owner: the apps of one Express share theirs. */
const namesShown = new WeakMap<object, Set<string>>();
/** The one seen last: most processes have one app. */
let last: object | undefined;
let lastKnown: Prototype | undefined;

/** Looks at a request's prototype once. What is no request of Express's (in a test, say) is known for itself alone. */
export function prototypeOf(request: object): Prototype {
  const prototype: object = Object.getPrototypeOf(request);
  if (prototype === last && lastKnown !== undefined) return lastKnown;
  let known = prototypes.get(prototype);
  if (known === undefined) {
    let owner: object | null = prototype;
    while (owner !== null && !Object.hasOwn(owner, "ip")) owner = Object.getPrototypeOf(owner);
    if (owner === null) return { owner: request, hasOwnIp: false, names: namesOf(request) };
    const ip = Object.getOwnPropertyDescriptor(owner, "ip")?.get;
    known = { owner, hasOwnIp: Object.hasOwn(owner, "ips") && ip?.name === "ip", names: namesOf(owner) };
    prototypes.set(prototype, known);
  }
  last = prototype;
  lastKnown = known;
  return known;
}

function namesOf(owner: object): Set<string> {
  let names = namesShown.get(owner);
  if (names === undefined) {
    names = new Set();
    namesShown.set(owner, names);
  }
  return names;
}

/**
 * Makes `req.rateLimit`, or what else it is called, read what core has decided: a getter on Express's own request prototype, as
 * `req.ip` is, costs a request nothing.
 * @throws FloodgateError where requests have another property of that name.
 */
export function showDecision(request: object, name: string): void {
  const { owner, names } = prototypeOf(request);
  if (names.has(name)) return;
  if (!(name in owner)) {
    Object.defineProperty(owner, name, {
      configurable: true,
      get(this: object) {
        return decisionOf(this, name);
      },
      set(this: object, value: unknown) {
        Object.defineProperty(this, name, { configurable: true, enumerable: true, writable: true, value });
      },
    });
  } else if (name !== "rateLimit") {
    throw new FloodgateError(
      "FLOODGATE_CONFLICTING_OPTIONS",
      `rateLimit: \`decisionName\` is ${JSON.stringify(name)}, but requests have a property of that name already. Choose another, such as decisionName: "quota".`,
    );
  }
  names.add(name);
}
