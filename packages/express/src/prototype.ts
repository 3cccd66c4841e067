import { FloodgateError } from "@floodgate/core";
import { decisionOf } from "@floodgate/core/adapter";

/** What we know about the prototype of an app's requests. */
interface Prototype {
  /** The prototype where Express defines `req.ip`. Decisions are defined there too. */
  readonly owner: object;
  /** Whether `req.ip` is Express's own. An app may replace it. */
  readonly hasOwnIp: boolean;
  /** The names of the decisions that are defined there. */
  readonly names: Set<string>;
}

const prototypes = new WeakMap<object, Prototype>();
/** By owner, which all apps of one Express share. */
const namesShown = new WeakMap<object, Set<string>>();
/** The last one, because most processes have one app. */
let last: object | undefined;
let lastKnown: Prototype | undefined;

/** Inspects a request's prototype, once per prototype. Other objects, such as mocks in tests, are inspected each time. */
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
 * Defines `req.rateLimit` (or another `decisionName`) as a getter on Express's request prototype, like `req.ip`, so it costs nothing per
 * request.
 * @returns the prototype of requests that have the getter now. Undefined if only this object has it.
 * @throws FloodgateError if requests already have a property of that name.
 */
export function showDecision(request: object, name: string): object | undefined {
  const { owner, names } = prototypeOf(request);
  const shownBy = owner === request ? undefined : Object.getPrototypeOf(request);
  if (names.has(name)) return shownBy;
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
  return shownBy;
}
