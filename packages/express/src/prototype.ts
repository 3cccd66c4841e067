import { checkDecisionName, decisionOf } from "@floodgate/core/adapter";

/** What we know about the prototype of an app's requests. */
interface Prototype {
  /** The prototype where Express defines `req.ip`. Decisions are defined there too. */
  readonly owner: object;
  /** Whether `req.ip` is Express's own. An app may replace it. */
  readonly hasOwnIp: boolean;
}

const prototypes = new WeakMap<object, Prototype>();
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
    if (owner === null) return { owner: request, hasOwnIp: false };
    const ip = Object.getOwnPropertyDescriptor(owner, "ip")?.get;
    known = { owner, hasOwnIp: Object.hasOwn(owner, "ips") && ip?.name === "ip" };
    prototypes.set(prototype, known);
  }
  last = prototype;
  lastKnown = known;
  return known;
}

/** The getters of decisions. All apps of one Express share them. */
const getters = new WeakSet<object>();

/**
 * Defines `req.rateLimit` (or another `decisionName`) as a getter on Express's request prototype, like `req.ip`, so it costs nothing per
 * request.
 * @returns the prototype of requests that have the getter now. Undefined if only this object has it.
 * @throws FloodgateError if requests already have a property of that name.
 */
export function showDecision(request: object, name: string): object | undefined {
  const { owner } = prototypeOf(request);
  const known = Object.getOwnPropertyDescriptor(owner, name)?.get;
  if (known === undefined || !getters.has(known)) {
    checkDecisionName(owner, name);
    if (!(name in owner)) define(owner, name);
  }
  return owner === request ? undefined : Object.getPrototypeOf(request);
}

function define(owner: object, name: string): void {
  function get(this: object): unknown {
    return decisionOf(this, name);
  }
  function set(this: object, value: unknown): void {
    Object.defineProperty(this, name, { configurable: true, enumerable: true, writable: true, value });
  }
  getters.add(get);
  Object.defineProperty(owner, name, { configurable: true, get, set });
}
